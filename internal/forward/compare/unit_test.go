package compare

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/progress"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/testing/golden"
	"github.com/df11-convert/df11-convert/verify"
)

// gpuFunc is a second decoder.
type gpuFunc func(ctx context.Context) error

func (f gpuFunc) Compare(ctx context.Context, _ *verify.Unit, _ io.ReaderAt, _ verify.CompareOptions) error {
	return f(ctx)
}

func (gpuFunc) Describe() (string, string) { return "", "" }

// goldenUnit returns a valid unit, stored, with its source.
func goldenUnit(t *testing.T) (*spans.Unit, verify.Arrays, []byte) {
	t.Helper()
	for _, g := range golden.Units(t) {
		if !g.Sound() || len(g.Sizes) < 2 {
			continue
		}
		u := &spans.Unit{Unit: plan.Unit{Path: g.Name}}
		for _, n := range g.Sizes {
			u.Attrs = append(u.Attrs, plan.Tensor{Name: "weight", Shape: []int64{n}})
		}
		arrays := verify.Arrays{}
		for name, b := range map[string][]byte{
			"luts": g.LUTs, "encoded_exponent": g.EncodedExponent, "sign_mantissa": g.SignMantissa,
			"output_positions": g.OutputPositions, "gaps": g.Gaps, "split_positions": g.SplitPositions,
		} {
			arrays[name] = io.NewSectionReader(bytes.NewReader(b), 0, int64(len(b)))
		}
		return u, arrays, g.Input
	}
	t.Fatal("no golden unit")
	return nil, nil, nil
}

// waitingReader returns nothing until the channel is closed.
type waitingReader struct {
	io.ReaderAt
	until <-chan struct{}
}

func (r waitingReader) ReadAt(p []byte, off int64) (int, error) {
	<-r.until
	return r.ReaderAt.ReadAt(p, off)
}

func comparer(second gpuFunc) *Comparer {
	return &Comparer{Means: Means{Workers: 1, GPU: second, Progress: new(progress.Counters)}}
}

// When the GPU begins, the CPU hasn't even read the source.
func TestComparerDoesBothAtOnce(t *testing.T) {
	u, arrays, source := goldenUnit(t)
	begun := make(chan struct{})
	c := comparer(gpuFunc(func(context.Context) error { close(begun); return nil }))
	waiting := waitingReader{bytes.NewReader(source), begun}
	if gpu, err := c.weights(t.Context(), u, arrays, waiting, bytes.NewReader(source)); err != nil || !gpu {
		t.Errorf("%v, %v", gpu, err)
	}
}

// If the CPU finds a difference, that ends the comparison, and the GPU's as well, no matter what
// the GPU finds. If only the GPU finds one, the error says that the CPU doesn't.
func TestComparerSaysWhoDisagrees(t *testing.T) {
	for _, c := range []struct {
		gpu     gpuFunc
		flip    byte // flips bits of a weight of the source
		elem    int64
		onlyGPU bool
	}{
		{func(context.Context) error { return nil }, 1, 1, false},
		{func(context.Context) error { return verify.ErrGPULost }, 1, 1, false},
		{func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }, 1, 1, false},
		{func(context.Context) error { return &verify.MismatchError{Elem: 5} }, 0, 5, true},
	} {
		u, arrays, source := goldenUnit(t)
		source[3] ^= c.flip
		both, m := comparer(c.gpu), (*verify.MismatchError)(nil)
		ok, err := both.weights(t.Context(), u, arrays, bytes.NewReader(source), bytes.NewReader(source))
		if ok || !errors.As(err, &m) || m.Elem != c.elem || strings.Contains(err.Error(), "the CPU decodes the same bytes correctly") != c.onlyGPU {
			t.Errorf("%v, %v", ok, err)
		}
	}
}
