package budget

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// f32Sample is how many bytes of F32 weights are read: 40,000 values.
const f32Sample = 160_000

// HintF32 reads some weights of a source that was refused for its F32 weights, and adds a hint to
// refused that says whether they are BF16 numbers. It doesn't change any other error, and it
// ignores errors while sampling.
func HintF32(ctx context.Context, src model.Source, m *model.Model, opt plan.Options,
	refused error) {
	r, ok := errors.AsType[*plan.RefusedError](refused)
	if !ok {
		return
	}
	opt.ExactF32 = true
	exact, err := plan.New(ctx, m.Listing, opt)
	if err != nil {
		return
	}
	e, err := Sample(ctx, src, exact, f32Sample)
	switch inexact, found := errors.AsType[*spans.InexactError](err); {
	case found:
		r.Hint = fmt.Sprintf("%v; convert the model to BF16 yourself if rounding is what you want",
			inexact)
	case err == nil && e.SampledBytes > 0:
		r.Next = "exact_f32"
		r.Hint = fmt.Sprintf("all %s sampled F32 values are exact BF16: add --exact-f32",
			human.Grouped(e.SampledBytes/4))
	}
}

// A weightReader reads the weights of a unit at any offset, as BF16 in encoding order, until ctx
// ends. It counts the F32 weights among them and drops their lower halves without an error; call
// inexact afterwards to learn whether all of them were exact.
type weightReader struct {
	ctx  context.Context //nolint:containedctx // of one sampling
	src  model.Source
	unit plan.Unit

	inexact, of int64       // values that BF16 can't hold, and all values that were read
	first       plan.Tensor // the first tensor with such a value
}

// ReadAt asks the source for exactly the bytes that p needs.
func (r *weightReader) ReadAt(p []byte, off int64) (int, error) {
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
func (r *weightReader) read(t plan.Tensor, p []byte, off int64) error {
	width := t.Length / t.SpoolBytes()
	b, err := r.src.ReadRange(r.ctx, t.File, t.Offset+off*width, int64(len(p))*width)
	if err != nil {
		return err
	}
	if !t.ExactF32 {
		copy(p, b)
		return nil
	}
	_, inexact := spans.Narrow(p, b)
	if inexact > 0 && r.inexact == 0 {
		r.first = t
	}
	r.inexact, r.of = r.inexact+inexact, r.of+int64(len(b)/4)
	return nil
}

// inexact returns a spans.InexactError for everything that the readers have counted, or nil if all
// values were exact.
func inexact(p *plan.Plan, units []weightReader) error {
	e := &spans.InexactError{}
	for _, r := range units {
		if r.inexact > 0 && e.Values == 0 {
			e.File, e.Tensor = p.Source().Weights[r.first.File].Path, r.first.Source
		}
		e.Values, e.Of = e.Values+r.inexact, e.Of+r.of
	}
	if e.Values == 0 {
		return nil
	}
	return e
}
