package proof

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/df11-convert/df11-convert/internal/progress"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/streams"
	"github.com/df11-convert/df11-convert/verify"
)

// GPU is the second decoder, where there is one. Compare is called by one goroutine at a time; it borrows its arguments.
// Its error is verify.ErrGPULost if no GPU works any more and none is required: the CPU's check then stands alone.
type GPU interface {
	Compare(ctx context.Context, a verify.Arrays, nElems int64, src io.ReaderAt, opt verify.CompareOptions) error
	// Describe names kernel and devices for the manifest.
	Describe() (kernel string, devices []string)
}

// A Checker compares stored units with their source. One goroutine uses it; the parallelism is inside.
type Checker struct {
	Workers  int
	GPU      GPU  // nil: none
	Strict   bool // for our own output: bytes that decoding never reads must be right too
	Progress *progress.Counters
}

// Unit decodes the stored arrays on the CPU, and on the GPU where there is one, and compares all 16 bits of every weight with
// src. Both do it at once, so that what one has read is still in the system's cache for the other. Nothing switches the CPU's
// check off. The result says whether a GPU has compared the unit as well.
func (c *Checker) Unit(ctx context.Context, u *spans.Unit, a verify.Arrays, src io.ReaderAt) (gpu bool, err error) {
	done := c.Progress.Timed(progress.Verify)
	opened, err := verify.Open(a, u.NElems(), u.Sizes())
	if err != nil {
		return false, err
	}
	opt := compareOptions(u, c.Workers)
	opt.Strict = c.Strict
	second, cancel := c.second(ctx, u, a, src, opt)
	defer cancel(nil)
	first := opened.Compare(ctx, src, opt)
	if first != nil {
		cancel(first) // what the GPU finds says no more
	}
	err = <-second // until then it borrows the arrays
	if first != nil {
		return false, first
	}
	if mismatch := (*verify.MismatchError)(nil); errors.As(err, &mismatch) {
		return false, fmt.Errorf("gpu: %w; the CPU decodes the same bytes rightly, so suspect the GPU, its memory or its driver, or a bug here: --gpu off does without", err)
	} else if err != nil && !errors.Is(err, verify.ErrGPULost) && !errors.Is(err, errNoGPU) {
		return false, fmt.Errorf("gpu: %w", err)
	}
	done(2 * u.NElems())
	c.Progress.Verified.Add(2 * u.NElems())
	return err == nil, nil
}

// errNoGPU is what second sends where there is no GPU. It is not verify.ErrNoGPU on purpose: Compare returns that one when a GPU
// that is required is lost, and that error must end the run.
var errNoGPU = errors.New("no GPU")

// second starts the GPU's check, which sends its result.
func (c *Checker) second(ctx context.Context, u *spans.Unit, a verify.Arrays, src io.ReaderAt, opt verify.CompareOptions) (<-chan error, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	result := make(chan error, 1)
	if c.GPU == nil {
		result <- errNoGPU
		return result, cancel
	}
	go func() { result <- c.GPU.Compare(ctx, a, u.NElems(), src, opt) }()
	return result, cancel
}

// compareOptions name a unit's tensors for messages.
func compareOptions(u *spans.Unit, workers int) verify.CompareOptions {
	names := make([]string, len(u.Attrs))
	for i, a := range u.Attrs {
		names[i] = a.Name
	}
	return verify.CompareOptions{Unit: u.Path, Names: names, Sizes: u.Sizes(), Workers: workers}
}

// AliasError says that two tensors that the model ties differ in the source.
type AliasError struct {
	Name, Of string
	Byte     int64
}

func (e *AliasError) Error() string {
	return fmt.Sprintf("%s is tied to %s by the config, but byte %d differs", e.Name, e.Of, e.Byte)
}

// Aliases compares each alias of an output with the tensor that stands for it. Both lie in the spool.
func Aliases(ctx context.Context, o *spans.Output, spool io.ReaderAt) error {
	for _, a := range o.Aliases {
		n, of := a.SpoolBytes(), a.Of.SpoolBytes()
		if n != of {
			return &AliasError{a.Name, a.Of.Name, min(n, of)}
		}
		at, err := streams.FirstDifference(ctx, io.NewSectionReader(spool, a.At, n), io.NewSectionReader(spool, a.Of.At, n), n)
		if err != nil {
			return fmt.Errorf("compare %s with %s: %w", a.Name, a.Of.Name, err)
		}
		if at >= 0 {
			return &AliasError{a.Name, a.Of.Name, at}
		}
	}
	return nil
}
