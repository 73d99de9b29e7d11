package forward

import (
	"github.com/df11-convert/df11-convert/internal/forward/spool"
	"github.com/df11-convert/df11-convert/internal/ledger"
)

// waitingFiles limits the disk that finished files take until they are uploaded.
type waitingFiles struct {
	*spool.Budget
	// for each output of an earlier run, the budget that holds it; nil: over budget
	chargedTo map[string]*spool.Budget
}

// newWaitingFiles charges the leftovers of earlier runs to the limit or, once that is used up, to
// what spools leave. They are uploaded no matter what else waits, so this can't block forever.
// Files that stay cost nothing.
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

// uploaded releases what an output has taken, no matter which run made it.
func (w *waitingFiles) uploaded(o ledger.Output) {
	b, leftover := w.chargedTo[o.Path]
	switch {
	case !leftover:
		w.Release(o.Size)
	case b != nil:
		b.Release(o.Size)
	}
}
