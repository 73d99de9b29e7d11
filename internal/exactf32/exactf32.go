// Package exactf32 takes F32 weights as BF16, and counts the values that BF16 cannot hold. The plan chooses the tensors.
package exactf32

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/plan"
)

// Narrow writes the upper halves of the F32 values in src to dst, which it may grow, and counts the values whose lower half
// is not zero: BF16 cannot hold them.
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

// Scope says which F32 weights an InexactError counts.
type Scope int

// Scopes of an InexactError.
const (
	ScopeTensor Scope = iota // the weights of one tensor; later tensors were not checked
	ScopeSample              // a sample of the model's weights
	ScopeModel               // all weights of the model
)

// InexactError says that Values of Of F32 weights do not fit BF16 without loss. Tensor is the first tensor with such a weight,
// by its name in the source.
type InexactError struct {
	File, Tensor string
	Values, Of   int64
	Scope        Scope
}

func (e *InexactError) Error() string {
	values, of := human.Grouped(e.Values, ","), human.Grouped(e.Of, ",")
	switch e.Scope {
	case ScopeTensor:
		return fmt.Sprintf("F32 tensor %s of %s: %s of its %s values cannot be stored in BF16 exactly; later tensors were not checked",
			e.Tensor, e.File, values, of)
	case ScopeSample:
		of += " sampled"
	case ScopeModel:
		of = "all " + of
	}
	return fmt.Sprintf("%s of %s F32 values cannot be stored in BF16 exactly; the first is in tensor %s of %s", values, of, e.Tensor, e.File)
}

// Count counts F32 values over several tensors. Its methods may be called from several goroutines.
type Count struct {
	mu         sync.Mutex
	values, of int64 // inexact values, and all values
	first      plan.Tensor
}

// Add counts values of a tensor: inexact ones among of.
func (c *Count) Add(t plan.Tensor, inexact, of int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if inexact > 0 && (c.values == 0 || cmp.Or(cmp.Compare(t.File, c.first.File), cmp.Compare(t.Offset, c.first.Offset)) < 0) {
		c.first = t
	}
	c.values, c.of = c.values+inexact, c.of+of
}

// Of returns how many values were counted.
func (c *Count) Of() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.of
}

// Err returns an InexactError, or nil if all values were exact.
func (c *Count) Err(p *plan.Plan, scope Scope) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.values == 0 {
		return nil
	}
	return &InexactError{File: p.Source().Weights[c.first.File].Path, Tensor: c.first.Source, Values: c.values, Of: c.of, Scope: scope}
}

// Ranges reads n bytes of a source's weight file from off on.
type Ranges interface {
	ReadRange(ctx context.Context, file int, off, n int64) ([]byte, error)
}

// Reader reads the weights of a unit at random, as BF16 in encoding order, and counts the F32 weights among them.
type Reader struct {
	ctx   context.Context //nolint:containedctx // io.ReaderAt has no room for one; the value lives as long as one sampling
	src   Ranges
	unit  plan.Unit
	count *Count
}

// NewReader makes a reader that works until ctx ends. It cuts off the lower halves of F32 weights without an error; afterwards the
// caller asks count whether all of them were exact.
func NewReader(ctx context.Context, src Ranges, u plan.Unit, count *Count) *Reader {
	return &Reader{ctx, src, u, count}
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
	r.count.Add(t, inexact, int64(len(b)/4))
	return nil
}
