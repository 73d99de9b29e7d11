package spans

import (
	"fmt"
	"slices"

	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/plan"
)

// Narrow writes the upper halves of the F32 values in src to dst, which it may grow. It counts the
// values whose lower half isn't zero: BF16 can't hold them.
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

// NExactF32 returns how many weights the plan takes from F32.
func NExactF32(p *plan.Plan) (n int64) {
	for _, u := range p.Units {
		for _, t := range u.Attrs {
			if t.ExactF32 {
				n += t.Length / 4
			}
		}
	}
	return n
}

// InexactError reports that Values of the Of F32 weights counted don't fit BF16 without loss.
// Tensor is the first with such a weight, by its name in the source.
type InexactError struct {
	File, Tensor string
	Values, Of   int64
}

func (e *InexactError) Error() string {
	return fmt.Sprintf("%s of %s F32 values that were counted cannot be stored in BF16 exactly; "+
		"the first is in tensor %s of %s",
		human.Grouped(e.Values), human.Grouped(e.Of), e.Tensor, e.File)
}

// Subject returns "pair", as model.OfPair: a DF11 model that stores BF16 can't restore these.
func (e *InexactError) Subject() string { return "pair" }
