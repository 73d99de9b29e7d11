package forward

import (
	"github.com/df11-convert/df11-convert/internal/forward/spool"
	"github.com/df11-convert/df11-convert/internal/ledger"
)

// waitingFiles is what finished files that do not stay take of the disk until they are uploaded.
type waitingFiles struct {
	*spool.Budget
	// by output of an earlier run, the budget that holds it; nil: it is over budget
	chargedTo map[string]*spool.Budget
}

// newWaitingFiles charges the leftovers of earlier runs to the limit, or where that is used up to
// what spools leave. They are uploaded whatever else waits, so this cannot block for ever. Files
// that stay take nothing.
func newWaitingFiles(stay bool, limit int64, spools *spool.Budget,
	leftovers []ledger.Output) *waitingFiles {
	if stay {
		return &waitingFiles{Budget: spool.NewBudget(0)}
	}
	w := &waitingFiles{spool.NewBudget(limit), map[string]*spool.Budget{}}
	for _, o := range leftovers {
		if !o.Here {
			continue
		}
		w.chargedTo[o.Path] = nil
		for _, b := range []*spool.Budget{w.Budget, spools} {
			if b.TryAcquire(o.Size) {
				w.chargedTo[o.Path] = b
				break
			}
		}
	}
	return w
}

// uploaded gives back what an output has taken, whoever made it.
func (w *waitingFiles) uploaded(o ledger.Output) {
	b, leftover := w.chargedTo[o.Path]
	switch {
	case !leftover:
		w.Release(o.Size)
	case b != nil:
		b.Release(o.Size)
	}
}
