package pipeline

import (
	"context"
	"io"

	"github.com/df11-convert/df11-convert/internal/plan"
)

// sample compares some chunks of every unit.
func (v *verification) sample(ctx context.Context) error {
	for _, t := range v.tasks {
		src := v.rangeSpool(ctx, t)
		for _, u := range t.units {
			if !v.DF11.coded(u.Path) {
				continue
			}
			opened, err := v.DF11.openUnit(u)
			if err != nil {
				return err
			}
			unitSrc := io.NewSectionReader(src, u.at, 2*u.nElems())
			if err := opened.CompareSample(ctx, unitSrc, u.compareOptions(v.Workers), v.Chunks, v.Seed); err != nil {
				return err
			}
		}
	}
	return nil
}

// rangeSpool reads a task's bytes at random from the original.
func (v *verification) rangeSpool(ctx context.Context, t *task) spool {
	var extents []extent
	t.eachTensor(func(x plan.Tensor, at int64, _ *taskUnit) {
		file := rangeReader{ctx, v.Source, x.File}
		if x.ExactF32 {
			f32 := narrowReader{io.NewSectionReader(file, x.Offset, x.Length), v.Model.Plan.Weights[x.File].Path, x.Source}
			extents = append(extents, extent{at: at, length: x.Length / 2, r: f32})
			return
		}
		extents = append(extents, extent{at: at, length: x.Length, r: file, off: x.Offset})
	})
	return newSpanSpool(extents)
}

// rangeReader is a weight file as an io.ReaderAt.
type rangeReader struct {
	ctx  context.Context //nolint:containedctx // see hubReaderAt
	src  Source
	file int
}

func (r rangeReader) ReadAt(p []byte, off int64) (int, error) {
	b, err := r.src.ReadRange(r.ctx, r.file, off, int64(len(p)))
	return copy(p, b), err
}

// narrowReader is an F32 tensor as the BF16 values that it holds. Offsets and lengths must be even.
type narrowReader struct {
	*io.SectionReader
	file, tensor string
}

func (r narrowReader) ReadAt(p []byte, off int64) (int, error) {
	b := make([]byte, min(2*len(p), blockBytes))
	for done := 0; done < len(p); {
		b = b[:min(2*(len(p)-done), len(b))]
		if n, err := r.SectionReader.ReadAt(b, 2*(off+int64(done))); n < len(b) {
			return done, readError(err)
		}
		half, inexact := narrowF32(nil, b, 0)
		if inexact > 0 {
			return done, &InexactError{File: r.file, Tensor: r.tensor, Values: inexact, Of: int64(len(half) / 2)}
		}
		done += copy(p[done:], half)
	}
	return len(p), nil
}
