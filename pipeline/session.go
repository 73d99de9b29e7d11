package pipeline

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"unicode"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/forward"
	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/progress"
	"github.com/df11-convert/df11-convert/internal/usage"
	"github.com/df11-convert/df11-convert/verify"
)

// A session is one call: what it may use, and what it has opened for itself.
type session struct {
	Means
	shares   budget.Memory // of the memory
	counters *progress.Counters
	gpu      *verify.GPU
	restore  func() // the collector's limits
	own      *Hubs  // of this call alone; nil if its caller shares them
	mu       sync.Mutex
	bySide   map[string]*hub.Client // the clients in use: "source", "target"
	// what upToDate was told of the source; whoever opens that next takes it, and asks nothing
	listed *listed
	dict   []byte // the file of the recipe's pattern dict; nil: not read yet
}

// A listed is a repo as the Hub has just described it at a revision, "" for main.
type listed struct {
	repo, revision string
	info           *hub.RepoInfo
}

// list returns what the Hub says of a repo.
func (s *session) list(ctx context.Context, c *hub.Client, repo,
	revision string) (*hub.RepoInfo, error) {
	last := s.listed
	s.listed = nil
	if last != nil && last.repo == repo && last.revision == revision {
		return last.info, nil
	}
	return c.Info(ctx, repo, revision)
}

// begin divides the memory by kind, such as [budget.ForReading]. Close the session.
func (m Means) begin(kind func(total int64, workers int) budget.Memory) (*session, error) {
	var own *Hubs
	if m.Hubs == nil {
		own = new(Hubs)
		m.Hubs = own
	}
	m.complete()
	if err := m.check(); err != nil {
		return nil, err
	}
	shares, err := m.divide(kind)
	if err != nil {
		return nil, err
	}
	s := &session{Means: m, shares: shares, counters: new(progress.Counters), own: own}
	s.restore = limitCollector(shares)
	return s, nil
}

// check refuses what no caller can mean. A value that's only misspelled must never be taken for
// another one.
func (m *Means) check() error {
	switch m.GPU {
	case "", verify.GPUAuto, verify.GPURequire, verify.GPUOff:
	default:
		return usage.Errorf("--gpu %s: want auto, require, or off", m.GPU)
	}
	if strings.ContainsFunc(m.Version, unicode.IsControl) { // requests have it in a header
		return usage.Errorf("the version %q has control characters", m.Version)
	}
	if m.Workers < 0 || m.Memory < 0 || m.Hubs != nil && m.Hubs.RateLimit < 0 {
		return usage.Errorf("workers, memory, and rates can't be negative")
	}
	return nil
}

func (m *Means) complete() {
	if m.Hubs == nil {
		m.Hubs = new(Hubs)
	}
	if m.Log == nil {
		m.Log = slog.New(slog.DiscardHandler)
	}
	m.Version = cmp.Or(m.Version, moduleVersion())
}

// moduleVersion returns the version of this module in the running program, or "dev".
func moduleVersion() string {
	const module = "github.com/df11-convert/df11-convert"
	info, _ := debug.ReadBuildInfo()
	if info == nil {
		return "dev"
	}
	for _, m := range append(info.Deps, &info.Main) {
		if version, ok := strings.CutPrefix(m.Version, "v"); ok && m.Path == module {
			return version
		}
	}
	return "dev"
}

// memory is the division for a conversion.
func (m *Means) memory() (budget.Memory, error) { return m.divide(budget.ForConversion) }

func (m *Means) divide(kind func(total int64, workers int) budget.Memory) (budget.Memory, error) {
	memory := cmp.Or(m.Memory, defaultMemory())
	if memory != 0 && memory < budget.LeastMemory {
		return budget.Memory{}, usage.Errorf("--memory %s is too little: at least 64MiB are needed",
			human.Bytes(memory))
	}
	return kind(memory, cmp.Or(m.Workers, runtime.GOMAXPROCS(0))), nil
}

// garbagePercent is the garbage that may pile up, in percent of the live heap. The collector can
// run often, because the heap is mostly buffers, which it doesn't scan.
const garbagePercent = 25

// collector counts the calls that limit the garbage collector of this process, and knows its limits
// before the first of them.
var collector struct {
	sync.Mutex
	calls   int
	limit   int64
	percent int
}

// limitCollector makes the garbage collector keep the heap within its share, and returns how to
// undo that. Of calls at once, the last one to begin decides, and the last one to end restores.
// Without a budget it does nothing.
func limitCollector(m budget.Memory) (restore func()) {
	if m.Budget == 0 {
		return func() {}
	}
	c := &collector
	c.Lock()
	defer c.Unlock()
	limit, percent := debug.SetMemoryLimit(m.Heap), debug.SetGCPercent(garbagePercent)
	if c.calls++; c.calls == 1 {
		c.limit, c.percent = limit, percent
	}
	return func() {
		c.Lock()
		defer c.Unlock()
		if c.calls--; c.calls == 0 {
			debug.SetMemoryLimit(c.limit)
			debug.SetGCPercent(c.percent)
		}
	}
}

// containerShare is the share of a container's limit that we use by default.
const containerShare = 0.75

// maxMemory is more than any machine has, and small enough that sums of sizes stay inside int64.
const maxMemory = 1 << 60

// defaultMemory returns the budget if none is given: a share of the limit of this process's control
// groups, or 0 if there is none or it can't be read.
func defaultMemory() int64 {
	limit, err := memlimit.FromCgroup()
	if err != nil || limit == 0 {
		return 0
	}
	return int64(max(budget.LeastMemory, containerShare*float64(min(limit, maxMemory))))
}

// means returns what the stages of a run work with.
func (s *session) means() forward.Means {
	return forward.Means{Workers: s.shares.Workers, Progress: s.counters}
}

// openGPU starts the GPU and adds it to means. It takes its host memory out of the session's.
// Without a GPU it does nothing, unless one is required.
func (s *session) openGPU(means *forward.Means) error {
	if runtime.GOOS == "js" { // which keeps the driver's interface out of a page's program
		return nil
	}
	g, err := verify.OpenGPU(verify.GPUOptions{Mode: s.GPU, Host: s.shares.GPU, Log: s.Log})
	if errors.Is(err, verify.ErrNoGPU) {
		return hint.On(err, hint.NoGPU)
	}
	if err != nil || g == nil {
		return err
	}
	s.gpu, means.GPU = g, g
	s.shares = s.shares.BesideGPU(g.Host())
	if s.shares.Budget > 0 {
		debug.SetMemoryLimit(s.shares.Heap)
	}
	return nil
}

// judged returns err, or an offline error in its place if err says that a model of a Hub is wrong,
// and the shared cache doesn't list all files of it. What isn't in the cache may well be on the
// Hub.
func (s *session) judged(err error) error {
	if !wraps[*plan.RefusedError](err) && !wraps[*model.InvalidError](err) &&
		!errors.Is(err, model.ErrNoDF11Config) {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.bySide {
		if unsure := c.Unsure(err); unsure != nil {
			return unsure
		}
	}
	return err
}

func (s *session) close() {
	if runtime.GOOS != "js" && s.gpu != nil {
		s.gpu.Close()
	}
	if s.own != nil {
		s.own.closeIdle()
	}
	s.restore()
}
