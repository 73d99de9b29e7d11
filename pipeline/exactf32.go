package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/df11-convert/df11-convert/internal/plan"
)

// Scope says among which F32 weights inexact ones were counted.
type Scope int

// Scopes of an InexactError.
const (
	ScopeTensor Scope = iota // those of the tensor; nothing is known of the ones behind it
	ScopeSample              // a sample of the model's
	ScopeModel               // all of the model's
)

// InexactError says that F32 weights do not fit BF16 without loss: Values of Of. The tensor, by its name in the source, is
// the first that has such.
type InexactError struct {
	File, Tensor string
	Values, Of   int64
	Scope        Scope
}

func (e *InexactError) Error() string {
	switch e.Scope {
	case ScopeSample:
		return fmt.Sprintf("%d of %d F32 values that were sampled are not exact in BF16, in tensor %s of %s first", e.Values, e.Of, e.Tensor, e.File)
	case ScopeModel:
		return fmt.Sprintf("%d of all %d F32 values are not exact in BF16, in tensor %s of %s first", e.Values, e.Of, e.Tensor, e.File)
	}
	return fmt.Sprintf("F32 tensor %s of %s: %d of its %d values are not exact in BF16, and what comes behind it was not looked at", e.Tensor, e.File, e.Values, e.Of)
}

// narrowF32 writes the upper halves of the F32 values in src to dst, which it may grow, and counts in inexact those
// whose lower half is not zero.
func narrowF32(dst, src []byte, inexact int64) ([]byte, int64) {
	if cap(dst) < len(src)/2 {
		dst = make([]byte, blockBytes/2)
	}
	dst = dst[:len(src)/2]
	for i := 0; i+4 <= len(src); i += 4 {
		if src[i]|src[i+1] != 0 {
			inexact++
		}
		dst[i/2], dst[i/2+1] = src[i+2], src[i+3]
	}
	return dst, inexact
}

// nExactF32 counts the weights that the plan takes from F32.
func nExactF32(p *plan.Plan) (n int64) {
	for _, u := range p.Units {
		for _, t := range u.Attrs {
			if t.ExactF32 {
				n += t.Length / 4
			}
		}
	}
	return n
}

// inexactCount counts F32 values over several tensors. Its methods may be called from several goroutines.
type inexactCount struct {
	mu         sync.Mutex
	values, of int64
	first      plan.Tensor
}

// add counts values of a tensor.
func (c *inexactCount) add(t plan.Tensor, values, of int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if values > 0 && (c.values == 0 || cmp.Or(cmp.Compare(t.File, c.first.File), cmp.Compare(t.Offset, c.first.Offset)) < 0) {
		c.first = t
	}
	c.values, c.of = c.values+values, c.of+of
}

// err is nil if all values were exact.
func (c *inexactCount) err(p *plan.Plan, scope Scope) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.values == 0 {
		return nil
	}
	return &InexactError{File: p.Source().Weights[c.first.File].Path, Tensor: c.first.Source, Values: c.values, Of: c.of, Scope: scope}
}

// countAllInexact makes an InexactError that ended a conversion speak of the whole model, if that costs no transfer.
func (r *run) countAllInexact(ctx context.Context, err error) error {
	_, local := r.Source.(localFiles)
	if inexact := (*InexactError)(nil); !local || !errors.As(err, &inexact) {
		return err
	}
	count, narrow := &inexactCount{}, []byte(nil)
	for _, u := range r.Plan.Units {
		for _, t := range u.Attrs {
			for off := int64(0); t.ExactF32 && off < t.Length; off += blockBytes {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				b, readErr := r.Source.ReadRange(ctx, t.File, t.Offset+off, min(blockBytes, t.Length-off))
				if readErr != nil {
					return errors.Join(err, readErr)
				}
				var n int64
				narrow, n = narrowF32(narrow, b, 0)
				count.add(t, n, int64(len(b)/4))
			}
		}
	}
	return cmp.Or(count.err(r.Plan, ScopeModel), err)
}
