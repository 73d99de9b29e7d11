package pipeline

import (
	"fmt"

	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// checkParts returns a PartsError if any of n parts has left an output to make.
func (j *job) checkParts(n int, done *ledger.Ledger) error {
	e := &PartsError{N: n, Missing: map[int][]string{}}
	makers := spans.Assign(j.outputs, n)
	for _, o := range j.outputs {
		if part := makers[o]; part > 0 && !done.Done(o.Path) {
			e.Missing[part] = append(e.Missing[part], o.Path)
		}
	}
	if len(e.Missing) > 0 {
		return e
	}
	return nil
}

// A PartsError says which parts are not complete.
type PartsError struct {
	N       int
	Missing map[int][]string // outputs by part
}

func (e *PartsError) Error() string {
	var parts []string
	for i := 1; i <= e.N; i++ {
		if names := e.Missing[i]; len(names) > 0 {
			parts = append(parts,
				fmt.Sprintf("part %d of %d lacks %s", i, e.N, human.List(names)))
		}
	}
	return "some parts are incomplete: " + human.List(parts)
}
