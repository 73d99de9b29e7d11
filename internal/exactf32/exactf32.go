// Package exactf32 takes F32 weights as BF16, and counts the values that BF16 cannot hold. The plan
// chooses the tensors.
package exactf32

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/plan"
)

// Narrow writes the upper halves of the F32 values in src to dst, which it may grow, and counts the
// values whose lower half is not zero: BF16 cannot hold them.
func Narrow(dst, src []byte) (narrowed []byte, inexact int64) {
	half := len(src) / 2
	dst = slices.Grow(dst[:0], half)[:half]
	for i := 0; i+4 <= len(src); i += 4 {
		if src[i]|src[i+1] != 0 {
			inexact++
		}
		dst[i/2], dst[i/2+1] = src[i+2], src[i+3]
	}
	return dst, inexact
}

// NWeights counts the weights that the plan takes from F32.
func NWeights(p *plan.Plan) (n int64) {
	for _, u := range p.Units {
		for _, t := range u.Attrs {
			if t.ExactF32 {
				n += t.Length / 4
			}
		}
	}
	return n
}

// InexactError says that Values of Of F32 weights that were counted do not fit BF16 without loss.
// Tensor is the first one with such a weight, by its name in the source.
type InexactError struct {
	File, Tensor string
	Values, Of   int64
}

func (e *InexactError) Error() string {
	return fmt.Sprintf(
		"%s of %s F32 values that were counted cannot be stored in BF16 exactly; the first is in tensor %s of %s",
		human.Grouped(e.Values), human.Grouped(e.Of), e.Tensor, e.File)
}

// Ranges reads n bytes of a source's weight file from off on.
type Ranges interface {
	ReadRange(ctx context.Context, file int, off, n int64) ([]byte, error)
}

// Reader reads the weights of a unit at random, as BF16 in encoding order, and counts the F32
// weights among them.
type Reader struct {
	ctx  context.Context //nolint:containedctx // io.ReaderAt has no room for one; the value lives as long as one sampling
	src  Ranges
	unit plan.Unit

	inexact, of int64       // values that BF16 cannot hold, of those that were read
	first       plan.Tensor // that has such a value
}

// NewReader makes a reader that works until ctx ends. It cuts off the lower halves of F32 weights
// without an error; afterwards the caller asks Counted whether all of them were exact.
func NewReader(ctx context.Context, src Ranges, u plan.Unit) *Reader {
	return &Reader{ctx: ctx, src: src, unit: u}
}

// ReadAt asks the source for exactly the bytes that p needs.
func (r *Reader) ReadAt(p []byte, off int64) (int, error) {
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
func (r *Reader) read(t plan.Tensor, p []byte, off int64) error {
	width := t.Length / t.SpoolBytes()
	b, err := r.src.ReadRange(r.ctx, t.File, t.Offset+off*width, int64(len(p))*width)
	if err != nil {
		return err
	}
	if !t.ExactF32 {
		copy(p, b)
		return nil
	}
	_, inexact := Narrow(p, b)
	if inexact > 0 && r.inexact == 0 {
		r.first = t
	}
	r.inexact, r.of = r.inexact+inexact, r.of+int64(len(b)/4)
	return nil
}

// Counted is an InexactError for all that the readers have counted, nil if all values were exact.
// There may be none for a unit.
func Counted(p *plan.Plan, units []*Reader) error {
	e := &InexactError{}
	for _, r := range units {
		if r == nil {
			continue
		}
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
