package proof

import (
	"context"
	"io"
	"slices"

	"github.com/df11-convert/df11-convert/internal/exactf32"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/spool"
	"github.com/df11-convert/df11-convert/internal/streams"
)

// sample compares some chunks of every unit that is stored as DF11.
func (v *verification) sample(ctx context.Context) error {
	for _, o := range v.outputs {
		source := v.sourceBytes(ctx, o)
		for _, u := range o.Units {
			if !v.DF11.Coded(u.Path) {
				continue
			}
			opened, err := v.DF11.OpenUnit(u)
			if err != nil {
				return err
			}
			weights := io.NewSectionReader(source, u.At, 2*u.NElems())
			if err := opened.CompareSample(ctx, weights, compareOptions(u, v.Workers), v.Chunks, v.Seed); err != nil {
				return err
			}
		}
	}
	return nil
}

// sourceBytes reads the source bytes of one output at random, straight from the original. Offsets and lengths are even in
// tensors that are narrowed.
func (v *verification) sourceBytes(ctx context.Context, o *spans.Output) io.ReaderAt {
	var extents []spool.Extent
	for t := range o.Tensors() {
		e := spool.Extent{At: t.At, Length: t.SpoolBytes(), R: v.Source.Local(t.File), Off: t.Offset}
		if e.R == nil {
			e.R = rangeReader{ctx, v.Source, t.File}
		}
		if t.ExactF32 {
			e.R, e.Off = narrowReader{io.NewSectionReader(e.R, t.Offset, t.Length), v.Model.Listing.Weights[t.File].Path, t.Source}, 0
		}
		extents = append(extents, e)
	}
	return spool.NewInPlace(extents, false)
}

// rangeReader is a weight file that has to be fetched.
type rangeReader struct {
	ctx  context.Context //nolint:containedctx // io.ReaderAt has no room for one; the value lives as long as one comparison
	src  model.Source
	file int
}

func (r rangeReader) ReadAt(p []byte, off int64) (int, error) {
	b, err := r.src.ReadRange(r.ctx, r.file, off, int64(len(p)))
	return copy(p, b), err
}

// narrowReader is an F32 tensor as the BF16 values that it holds.
type narrowReader struct {
	f32          *io.SectionReader
	file, tensor string
}

func (r narrowReader) ReadAt(p []byte, off int64) (int, error) {
	done := 0
	for half := range slices.Chunk(p, streams.BlockBytes/2) {
		f32 := make([]byte, 2*len(half))
		if err := streams.ReadFull(r.f32, f32, 2*(off+int64(done))); err != nil {
			return done, err
		}
		if _, inexact := exactf32.Narrow(half, f32); inexact > 0 {
			return done, &exactf32.InexactError{File: r.file, Tensor: r.tensor, Values: inexact, Of: int64(len(half) / 2), Scope: exactf32.ScopeSample}
		}
		done += len(half)
	}
	return done, nil
}
