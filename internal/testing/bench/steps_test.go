package bench

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/df11-convert/df11-convert/encoder"
	"github.com/df11-convert/df11-convert/internal/testing/alloc"
	"github.com/df11-convert/df11-convert/verify"
)

// work runs on a number of cores.
type work func(ctx context.Context, cores int) error

// step is a part of a conversion, or a yardstick for one.
type step struct {
	name string
	run  work
}

// lab holds what the steps work on.
type lab struct {
	weights []byte // BF16, one unit
	sizes   []int64
	memory  map[string]alloc.Memory // the six tensors of the unit
	counted *encoder.Unit
	sink    atomic.Uint64 // holds what sha256 computes, so that the compiler keeps it
}

func newLab(tb testing.TB, weights []byte) *lab {
	l := &lab{weights: weights, sizes: []int64{int64(len(weights) / 2)}}
	var err error
	if l.counted, err = l.count(tb.Context(), runtime.GOMAXPROCS(0)); err != nil {
		tb.Fatal(err)
	}
	l.memory = map[string]alloc.Memory{}
	for _, t := range l.counted.Tensors() {
		l.memory[t.Name] = make(alloc.Memory, t.NBytes)
	}
	if err := l.encode(tb.Context(), runtime.GOMAXPROCS(0)); err != nil { // verify needs a unit
		tb.Fatal(err)
	}
	return l
}

// steps lists all steps.
func (l *lab) steps() []step {
	return []step{
		{"naive", l.naive},   // the plainest loop that splits weights and counts exponents
		{"sha256", l.sha256}, // one message per core
		{"verify", l.verify}, // decode, gaps and positions again, compare all 16 bits
		{"encode", l.encode}, // pass 2 alone
		{"unit", l.unit},     // pass 1, tables, pass 2
	}
}

// shares calls do for equal parts of the weights, one per core, at the same time.
func (l *lab) shares(cores int, do func(bf16 []byte, elem int) error) error {
	var wg sync.WaitGroup
	errs := make([]error, cores)
	n := len(l.weights) / 2
	for i := range cores {
		from, end := n*i/cores, n*(i+1)/cores
		wg.Go(func() { errs[i] = do(l.weights[2*from:2*end], from) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (l *lab) naive(_ context.Context, cores int) error {
	all := l.memory[encoder.NameSignMantissa]
	return l.shares(cores, func(p []byte, elem int) error {
		var counts [256]uint64
		sm := all[elem:][:len(p)/2]
		for i := range sm {
			w := binary.LittleEndian.Uint16(p[2*i:])
			sm[i] = byte(w>>8)&0x80 | byte(w)&0x7f
			counts[byte(w>>7)]++
		}
		return nil
	})
}

func (l *lab) count(ctx context.Context, workers int) (*encoder.Unit, error) {
	c, err := encoder.NewCounter(l.sizes)
	if err != nil {
		return nil, err
	}
	err = l.shares(workers, func(p []byte, elem int) error { c.Add(int64(elem), p); return nil })
	if err != nil {
		return nil, err
	}
	return c.Finish()
}

func (l *lab) encode(ctx context.Context, cores int) error {
	return l.counted.Encode(ctx, alloc.Memory(l.weights), l.dst(), cores)
}

func (l *lab) unit(ctx context.Context, cores int) error {
	u, err := l.count(ctx, cores)
	if err != nil {
		return err
	}
	return u.Encode(ctx, alloc.Memory(l.weights), l.dst(), cores)
}

func (l *lab) dst() encoder.Dst {
	return func(name string) io.WriterAt { return l.memory[name] }
}

func (l *lab) verify(ctx context.Context, cores int) error {
	at := func(name string) *io.SectionReader {
		b := l.memory[name]
		return io.NewSectionReader(bytes.NewReader(b), 0, int64(len(b)))
	}
	u, err := verify.Open(verify.ArraysAt(at), l.sizes)
	if err != nil {
		return err
	}
	return u.Compare(ctx, alloc.Memory(l.weights), verify.CompareOptions{Workers: cores})
}

func (l *lab) sha256(_ context.Context, cores int) error {
	return l.shares(cores, func(p []byte, _ int) error { l.sink.Add(uint64(sha256.Sum256(p)[0])); return nil })
}
