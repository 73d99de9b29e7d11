package compare

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/df11-convert/df11-convert/internal/forward/spool"
	"github.com/df11-convert/df11-convert/internal/progress"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/streams"
	"github.com/df11-convert/df11-convert/verify"
)

// GPU is a second decoder. One goroutine at a time calls Compare, which borrows its arguments. Its
// error is verify.ErrGPULost if the GPU has failed and isn't required; then only the CPU checks.
type GPU interface {
	Compare(ctx context.Context, u *verify.Unit, src io.ReaderAt, opt verify.CompareOptions) error
	// Describe names kernel and device for the manifest.
	Describe() (kernel, device string)
}

// unit compares a unit: its decoded weights, or its stored weights if it stays in BF16. It reports
// whether a GPU has compared it, too.
func (c *Comparer) unit(ctx context.Context, u *spans.Unit, stored Stored,
	source, again io.ReaderAt) (gpu bool, err error) {
	if !stored.Coded(u.Path) {
		for t := range u.Tensors() {
			if err := c.tensor(ctx, t, stored, source); err != nil {
				return false, err
			}
		}
		return false, nil
	}
	weights := io.NewSectionReader(source, u.At, u.NBytes())
	second := io.NewSectionReader(again, u.At, u.NBytes())
	arrays := verify.ArraysAt(func(name string) *io.SectionReader {
		return section(stored, u.Path+"."+name)
	})
	if c.GPU == nil || c.NearDir == nil {
		return c.weights(ctx, u, arrays, weights, second)
	}
	near, err := spool.NewTemp(c.NearDir)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, near.Release()) }()
	if arrays, err = copyArrays(ctx, near, u.Path, stored); err != nil {
		return false, fmt.Errorf("fetch module %s: %w", u.Path, err)
	}
	return c.weights(ctx, u, arrays, weights, second)
}

// section returns the bytes of a stored tensor. For a missing tensor it returns an empty section,
// which verify.Open refuses.
func section(stored Stored, name string) *io.SectionReader {
	if s, ok := stored.Section(name); ok {
		return s
	}
	return io.NewSectionReader(nil, 0, 0)
}

// copyArrays copies the six tensors of a unit to a file, one after the other.
func copyArrays(ctx context.Context, to *spool.Spool, unitPath string,
	stored Stored) (a verify.Arrays, err error) {
	var end int64
	a = verify.ArraysAt(func(name string) *io.SectionReader {
		s := section(stored, unitPath+"."+name)
		at := end
		end += s.Size()
		if err == nil {
			err = streams.CopySection(ctx, io.NewOffsetWriter(to, at), s)
		}
		return io.NewSectionReader(to, at, s.Size())
	})
	return a, err
}

// weights decodes the stored arrays on the CPU and, if there is one, on the GPU, and compares all
// 16 bits of every weight with src. Both work at the same time, so what one has read is still in
// the system's cache for the other. The CPU always checks.
func (c *Comparer) weights(ctx context.Context, u *spans.Unit, a verify.Arrays,
	src, again io.ReaderAt) (gpu bool, err error) {
	done := c.Progress.Timed(progress.Verify)
	opened, err := verify.Open(a, u.Sizes())
	if err != nil {
		return false, fmt.Errorf("module %s: %w", u.Path, err)
	}
	opt := options(u, c.Workers)
	opt.Strict = c.Strict
	if c.GPU == nil {
		err = opened.Compare(ctx, src, opt)
	} else {
		gpu, err = c.both(ctx, opened, src, again, opt)
	}
	if err != nil {
		return false, err
	}
	done(u.NBytes())
	c.Progress.Verified.Add(u.NBytes())
	return gpu, nil
}

// both compares on the CPU and on the GPU.
func (c *Comparer) both(ctx context.Context, u *verify.Unit, src, again io.ReaderAt,
	opt verify.CompareOptions) (gpu bool, err error) {
	gctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	second := make(chan error, 1)
	go func() { second <- c.GPU.Compare(gctx, u, again, opt) }()
	first := u.Compare(ctx, src, opt)
	if first != nil {
		cancel(first) // the GPU can't add anything
	}
	err = <-second // until then, the GPU borrows the unit
	switch mismatch := (*verify.MismatchError)(nil); {
	case first != nil:
		return false, first
	case errors.As(err, &mismatch):
		return false, fmt.Errorf("gpu: %w, but the CPU decodes the same bytes correctly; suspect "+
			"the GPU, its memory, its driver, or a bug here, and try --gpu off", err)
	case err != nil && !errors.Is(err, verify.ErrGPULost):
		return false, fmt.Errorf("module %s: gpu: %w", opt.Unit, err)
	}
	return err == nil, nil
}

// options names a unit's tensors for errors.
func options(u *spans.Unit, workers int) verify.CompareOptions {
	names := make([]string, len(u.Attrs))
	for i, a := range u.Attrs {
		names[i] = a.Name
	}
	return verify.CompareOptions{Unit: u.Path, Names: names, Workers: workers}
}
