package spans

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// An UnaccountedError says that a plan would lose a tensor of the source, or take it twice. It's a
// bug of this program, not a fault of the source.
type UnaccountedError struct{ File, Tensor string }

func (e *UnaccountedError) Error() string {
	return fmt.Sprintf("internal error: tensor %s of %s would not be stored, compared, or left out "+
		"exactly once", e.Tensor, e.File)
}

// Hint says what to do about the error.
func (e *UnaccountedError) Hint() hint.Hint { return hint.Unaccounted }

// account returns an *UnaccountedError unless the header, the outputs' tensors, and the tensors that
// the plan leaves out cover every weight file exactly once.
func account(p *plan.Plan, outputs []*Output) error {
	weights := p.Source().Weights
	taken := make([][]plan.Tensor, len(weights))
	take := func(t plan.Tensor) {
		if t.File < len(taken) {
			taken[t.File] = append(taken[t.File], t)
		}
	}
	for _, o := range outputs {
		for t := range o.Tensors() {
			take(t.Tensor)
		}
	}
	for _, t := range p.Dropped {
		take(t)
	}
	for i, w := range weights {
		if name := uncovered(w, taken[i]); name != "" {
			return &UnaccountedError{w.Path, name}
		}
	}
	return nil
}

// uncovered returns the first tensor of a weight file that isn't taken exactly once, or "". Parsing
// has shown that the tensors of its header cover the file without holes.
func uncovered(w plan.WeightFile, taken []plan.Tensor) string {
	slices.SortFunc(taken, func(a, b plan.Tensor) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.Length, b.Length),
			cmp.Compare(a.Source, b.Source))
	})
	want := slices.Clone(w.Header.Tensors)
	slices.SortFunc(want, func(a, b safetensors.Tensor) int {
		return cmp.Or(cmp.Compare(a.Begin, b.Begin), cmp.Compare(a.End, b.End),
			cmp.Compare(a.Name, b.Name))
	})
	for _, t := range want {
		at, end, n := w.Header.DataStart()+t.Begin, w.Header.DataStart()+t.End, 0
		isNext := func(x plan.Tensor) bool { return x.Source == t.Name && x.Offset == at }
		for ; len(taken) > 0 && isNext(taken[0]) && (at < end || n == 0); n++ { // its slices
			at, taken = at+taken[0].Length, taken[1:]
		}
		if n == 0 || at != end {
			return t.Name
		}
	}
	if len(taken) > 0 {
		return taken[0].Source
	}
	return ""
}
