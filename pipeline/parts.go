package pipeline

import (
	"fmt"

	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/target"
)

// checkParts returns a PartsError if any of n parts has left an output to make.
func (j *job) checkParts(n int, repo *target.Repo, done *ledger.Ledger) error {
	e := &PartsError{N: n, Missing: map[int][]string{}, Others: map[int]string{}}
	makers := spans.Assign(j.outputs, n)
	for _, o := range j.outputs {
		part := makers[o]
		if part == 0 || done.Done(o.Path) {
			continue
		}
		e.Missing[part] = append(e.Missing[part], o.Path)
		c := repo.CommitOf(spans.Part{I: part, N: n})
		if c != j.Model.Commit && names.IsCommit(c) {
			e.Others[part] = fmt.Sprintf(" (it was made from commit %s, this run uses %s)", c,
				j.Model.Commit)
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
	Others  map[int]string   // for parts made from another commit of the source: both commits
}

func (e *PartsError) Error() string {
	var parts []string
	for i := 1; i <= e.N; i++ {
		if names := e.Missing[i]; len(names) > 0 {
			parts = append(parts,
				fmt.Sprintf("part %d of %d lacks %s%s", i, e.N, human.List(names), e.Others[i]))
		}
	}
	return "some parts are incomplete: " + human.List(parts)
}
