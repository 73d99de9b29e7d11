package budget

import (
	"context"
	"io"

	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// A weightReader reads the weights of a unit at any offset, as BF16 in encoding order, until ctx
// ends. An F32 weight that BF16 can't hold is a spans.InexactError.
type weightReader struct {
	ctx  context.Context //nolint:containedctx // of one sampling
	src  model.Source
	plan *plan.Plan
	unit plan.Unit
}

// ReadAt asks the source for exactly the bytes that p needs.
func (r weightReader) ReadAt(p []byte, off int64) (int, error) {
	done, at := 0, int64(0)
	for _, t := range r.unit.Attrs {
		end := at + t.SpoolBytes()
		if from, to := max(off, at), min(off+int64(len(p)), end); from < to {
			if err := r.read(t, p[from-off:to-off], from-at); err != nil {
				return done, err
			}
			done += int(to - from)
		}
		at = end
	}
	if done < len(p) {
		return done, io.EOF
	}
	return done, nil
}

// read fills p with the BF16 bytes of a tensor from off on.
func (r weightReader) read(t plan.Tensor, p []byte, off int64) error {
	if !t.ExactF32 {
		return r.src.ReadRange(r.ctx, t.File, p, t.Offset+off)
	}
	b := make([]byte, 2*len(p))
	if err := r.src.ReadRange(r.ctx, t.File, b, t.Offset+2*off); err != nil {
		return err
	}
	if _, inexact := spans.Narrow(p, b); inexact > 0 {
		return &spans.InexactError{File: r.plan.Source().Weights[t.File].Path, Tensor: t.Source,
			Values: inexact, Of: int64(len(b) / 4)}
	}
	return nil
}
