// Package bench measures how fast this machine does each step of a conversion, on generated weights. It prints nothing
// and holds no step's own code: it calls the packages that a conversion calls.
package bench

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"
)

// The stages, in the order in which they are reported.
const (
	StageMemoryRead     = "memory_read"     // sum of all 8-byte words
	StageNaive          = "naive"           // encoder.Naive: plain loop, one histogram
	StageSplitHistogram = "split_histogram" // the same work by the variant's inner loops
	StageEncode         = "encode"          // pass 2 alone, in memory
	StageUnit           = "unit"            // pass 1, tables, pass 2, in memory
	StageVerify         = "verify"          // decode, gaps and positions again, compare all 16 bits
	StageSHA256         = "sha256"          // one message per core
	StageFile           = "file"            // unit from file to file, with the sha256 of the result
	StageFileVerify     = "file_verify"     // and verified from the stored bytes before the sha256
)

// pathGo is the path of stages that have only one.
const pathGo = "go"

// Sizes of the generated weights in bytes.
const (
	DefaultSize = 256 << 20
	MinSize     = 1 << 20
	MaxSize     = 2 << 30
)

// Rounds are repeated until the next one would end after the budget of time, and at most so often.
const (
	maxRounds     = 9
	defaultBudget = 45 * time.Second
)

// Options say how to measure. The zero value works.
type Options struct {
	// Size is the number of bytes of BF16 weights, MinSize to MaxSize; 0 means DefaultSize.
	Size int64
	// Dir is where the files of the file stages are made; "" means the system's temporary folder.
	Dir string
	// Budget is the time that all of it should take, 0 means 45 s; one round is always made.
	Budget time.Duration
	// Progress, if not nil, is called before each round; round 0 only warms up.
	Progress func(round int)
}

// Report is what was measured.
type Report struct {
	CPU    string  `json:"cpu"`
	Cores  int     `json:"cores"`
	Stages []Stage `json:"stages"`

	Size   int64 `json:"-"` // bytes of weights
	Rounds int   `json:"-"` // behind each median
}

// Stage is the median of one stage.
type Stage struct {
	Stage string `json:"stage"`
	// Path names the variant of the inner loops.
	Path  string `json:"path"`
	Cores int    `json:"cores"`
	// GWeightsPerS are 10⁹ weights per second, GBPerS 10⁹ bytes of BF16 weights (of any data, where none are weights).
	GWeightsPerS float64 `json:"gweights_per_s"`
	GBPerS       float64 `json:"gb_per_s"`
	// RatioToNaive compares with the naive stage on as many cores in the same round: the median of the ratios.
	RatioToNaive float64 `json:"ratio_to_naive"`
}

// measurement is one line of the report in the making.
type measurement struct {
	stage, path string
	cores       int
	run         func(ctx context.Context, cores int) error
	after       func() error // not measured; may be nil
	seconds     []float64    // by round
}

// Run measures every stage. The stages take turns, so that a machine that changes its speed changes it for all. The
// runtime's number of cores is changed while a stage runs: nothing else should run in the process.
func Run(ctx context.Context, opt Options) (*Report, error) {
	if err := opt.check(); err != nil {
		return nil, err
	}
	start := time.Now()
	l, err := newLab(ctx, opt)
	if err != nil {
		return nil, err
	}
	defer l.close()
	ms := l.measurements()
	rounds, err := measure(ctx, opt, start, ms)
	if err != nil {
		return nil, err
	}
	r := &Report{CPU: cpuName(), Cores: runtime.GOMAXPROCS(0), Size: opt.Size, Rounds: rounds}
	for _, m := range ms {
		r.Stages = append(r.Stages, m.stageOf(ms, opt.Size))
	}
	return r, nil
}

func (o *Options) check() error {
	if o.Size == 0 {
		o.Size = DefaultSize
	}
	if o.Size < MinSize || o.Size > MaxSize {
		return fmt.Errorf("size %d is not between %d and %d bytes", o.Size, MinSize, MaxSize)
	}
	o.Size -= o.Size % MinSize
	if o.Budget == 0 {
		o.Budget = defaultBudget
	}
	return nil
}

// measure makes the rounds and returns how many count.
func measure(ctx context.Context, opt Options, start time.Time, ms []*measurement) (rounds int, err error) {
	for round := 0; ; round++ {
		began := time.Now()
		if opt.Progress != nil {
			opt.Progress(round)
		}
		for _, m := range ms {
			if err := m.once(ctx, round > 0); err != nil {
				return 0, fmt.Errorf("stage %s, path %s, %d cores: %w", m.stage, m.path, m.cores, err)
			}
		}
		next := time.Since(start) + time.Since(began)
		if round >= maxRounds || round > 0 && next > opt.Budget {
			return round, nil
		}
	}
}

// once runs a measurement on its number of cores and keeps the time, if it counts.
func (m *measurement) once(ctx context.Context, counts bool) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(m.cores))
	start := time.Now()
	err := m.run(ctx, m.cores)
	if counts {
		m.seconds = append(m.seconds, time.Since(start).Seconds())
	}
	if m.after != nil {
		if e := m.after(); err == nil {
			err = e
		}
	}
	return err
}

// stageOf sums a measurement up.
func (m *measurement) stageOf(all []*measurement, size int64) Stage {
	i := slices.IndexFunc(all, func(o *measurement) bool { return o.stage == StageNaive && o.cores == m.cores })
	ratios := make([]float64, len(m.seconds))
	for j, s := range m.seconds {
		ratios[j] = all[i].seconds[j] / s
	}
	gb := float64(size) / 1e9 / median(m.seconds)
	return Stage{m.stage, m.path, m.cores, gb / 2, gb, median(ratios)}
}

func median(x []float64) float64 {
	x = slices.Sorted(slices.Values(x))
	if n := len(x); n%2 == 0 {
		return (x[n/2-1] + x[n/2]) / 2
	}
	return x[len(x)/2]
}
