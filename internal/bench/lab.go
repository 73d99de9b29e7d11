package bench

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"io"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/df11-convert/df11-convert/encoder"
	"github.com/df11-convert/df11-convert/verify"
)

// lab holds what the stages work on.
type lab struct {
	weights []byte // BF16, one unit
	sizes   []int64
	memory  map[string]encoder.Memory // the six tensors of the unit
	counted map[string]*encoder.Unit  // by variant
	files   *files
	sink    atomic.Uint64 // what memory_read sums up goes here, so that it is not left out
}

func newLab(ctx context.Context, opt Options) (*lab, error) {
	l := &lab{weights: makeWeights(opt.Size), sizes: []int64{opt.Size / 2}, counted: map[string]*encoder.Unit{}}
	for _, path := range encoder.Variants() {
		u, err := l.count(ctx, path, runtime.GOMAXPROCS(0))
		if err != nil {
			return nil, err
		}
		l.counted[path] = u
	}
	l.memory = map[string]encoder.Memory{}
	for _, t := range l.counted[pathGo].Tensors() {
		l.memory[t.Name] = make(encoder.Memory, t.NBytes)
	}
	var err error
	l.files, err = newFiles(opt.Dir, l.weights)
	return l, err
}

func (l *lab) close() { l.files.close() }

// measurements lists all stages on one core and on all.
func (l *lab) measurements() []*measurement {
	cores := slices.Compact([]int{1, runtime.GOMAXPROCS(0)})
	var ms []*measurement
	add := func(stage string, paths []string, run func(path string) func(context.Context, int) error, after func() error) {
		for _, path := range paths {
			for _, n := range cores {
				ms = append(ms, &measurement{stage: stage, path: path, cores: n, run: run(path), after: after})
			}
		}
	}
	only := []string{pathGo}
	add(StageMemoryRead, only, l.memoryRead, nil)
	add(StageNaive, only, l.naive, nil)
	add(StageSplitHistogram, encoder.Variants(), l.split, nil)
	add(StageEncode, encoder.Variants(), l.encode, nil)
	add(StageUnit, encoder.Variants(), l.unit, nil)
	add(StageVerify, verify.Variants(), l.verify, nil)
	add(StageSHA256, only, l.sha256, nil)
	add(StageFile, encoder.Variants(), func(p string) func(context.Context, int) error { return l.files.convert(p, false) }, l.files.clean)
	add(StageFileVerify, encoder.Variants(), func(p string) func(context.Context, int) error { return l.files.convert(p, true) }, l.files.clean)
	return ms
}

// shares calls work for equal parts of the weights, one per core, at the same time.
func (l *lab) shares(cores int, work func(bf16 []byte, elem int)) {
	var wg sync.WaitGroup
	n := len(l.weights) / 2
	for i := range cores {
		from, end := n*i/cores, n*(i+1)/cores
		wg.Go(func() { work(l.weights[2*from:2*end], from) })
	}
	wg.Wait()
}

func (l *lab) memoryRead(string) func(context.Context, int) error {
	return func(_ context.Context, cores int) error {
		l.shares(cores, func(p []byte, _ int) { l.sink.Add(sumWords(p)) })
		return nil
	}
}

// sumWords reads p, 64 bytes at a time, as fast as plain Go can.
func sumWords(p []byte) uint64 {
	var a, b, c, d uint64
	for ; len(p) >= 64; p = p[64:] {
		q := p[:64:64]
		a += binary.LittleEndian.Uint64(q) + binary.LittleEndian.Uint64(q[8:])
		b += binary.LittleEndian.Uint64(q[16:]) + binary.LittleEndian.Uint64(q[24:])
		c += binary.LittleEndian.Uint64(q[32:]) + binary.LittleEndian.Uint64(q[40:])
		d += binary.LittleEndian.Uint64(q[48:]) + binary.LittleEndian.Uint64(q[56:])
	}
	return a + b + c + d
}

func (l *lab) naive(string) func(context.Context, int) error {
	sm := l.memory[encoder.NameSignMantissa]
	return func(_ context.Context, cores int) error {
		l.shares(cores, func(p []byte, elem int) {
			var counts [256]uint64
			encoder.Naive(sm[elem:][:len(p)/2], &counts, p)
		})
		return nil
	}
}

func (l *lab) split(path string) func(context.Context, int) error {
	sm := l.memory[encoder.NameSignMantissa]
	return func(_ context.Context, cores int) error {
		var failed atomic.Pointer[error]
		l.shares(cores, func(p []byte, elem int) {
			var counts [256]uint64
			if err := (encoder.Options{Variant: path}).Split(sm[elem:][:len(p)/2], &counts, p); err != nil {
				failed.Store(&err)
			}
		})
		if err := failed.Load(); err != nil {
			return *err
		}
		return nil
	}
}

func (l *lab) count(ctx context.Context, path string, workers int) (*encoder.Unit, error) {
	c, err := encoder.Options{Variant: path}.NewCounter(l.sizes)
	if err != nil {
		return nil, err
	}
	if err := c.AddAll(ctx, encoder.Memory(l.weights), workers); err != nil {
		return nil, err
	}
	return c.Finish()
}

func (l *lab) encode(path string) func(context.Context, int) error {
	return func(ctx context.Context, cores int) error {
		return l.counted[path].Encode(ctx, encoder.Memory(l.weights), l.dst(), cores)
	}
}

func (l *lab) unit(path string) func(context.Context, int) error {
	return func(ctx context.Context, cores int) error {
		u, err := l.count(ctx, path, cores)
		if err != nil {
			return err
		}
		return u.Encode(ctx, encoder.Memory(l.weights), l.dst(), cores)
	}
}

func (l *lab) dst() encoder.Dst {
	return dstOf(func(name string) io.WriterAt { return l.memory[name] })
}

func (l *lab) verify(path string) func(context.Context, int) error {
	return func(ctx context.Context, cores int) error {
		arrays := arraysOf(func(name string) *io.SectionReader {
			b := l.memory[name]
			return io.NewSectionReader(bytes.NewReader(b), 0, int64(len(b)))
		})
		u, err := verify.Open(arrays, l.sizes[0], l.sizes)
		if err != nil {
			return err
		}
		return u.Compare(ctx, encoder.Memory(l.weights), verify.CompareOptions{Workers: cores, Variant: path})
	}
}

func (l *lab) sha256(string) func(context.Context, int) error {
	return func(_ context.Context, cores int) error {
		l.shares(cores, func(p []byte, _ int) { l.sink.Add(uint64(sha256.Sum256(p)[0])) })
		return nil
	}
}

func dstOf(at func(name string) io.WriterAt) encoder.Dst {
	return encoder.Dst{
		LUTs: at(encoder.NameLUTs), EncodedExponent: at(encoder.NameEncodedExponent),
		SignMantissa: at(encoder.NameSignMantissa), OutputPositions: at(encoder.NameOutputPositions),
		Gaps: at(encoder.NameGaps), SplitPositions: at(encoder.NameSplitPositions),
	}
}

func arraysOf(at func(name string) *io.SectionReader) verify.Arrays {
	return verify.Arrays{
		LUTs: at(encoder.NameLUTs), EncodedExponent: at(encoder.NameEncodedExponent),
		SignMantissa: at(encoder.NameSignMantissa), OutputPositions: at(encoder.NameOutputPositions),
		Gaps: at(encoder.NameGaps), SplitPositions: at(encoder.NameSplitPositions),
	}
}
