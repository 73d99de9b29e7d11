package forward

import (
	"testing"

	"github.com/df11-convert/df11-convert/internal/forward/spool"
	"github.com/df11-convert/df11-convert/internal/ledger"
)

// Every output releases exactly what it has acquired: whether it's new or left over from an earlier
// run, and whether the budget for outputs, the one for spools, or neither had space for it.
func TestRoomIsGivenBackOnce(t *testing.T) {
	leftovers := []ledger.Output{
		{Path: "among outputs", Size: 60, Place: ledger.Place{Here: true}},
		{Path: "among spools", Size: 70, Place: ledger.Place{Here: true}},
		{Path: "nowhere", Size: 90, Place: ledger.Place{Here: true}},
		{Path: "not here", Size: 10, Place: ledger.Place{Uploaded: true}},
	}
	spools := spool.NewBudget(100)
	r := newWaitingFiles(false, 100, spools, leftovers)
	must(t, r.Acquire(t.Context(), 40)) // for a new output
	for _, b := range []*spool.Budget{r.Budget, spools} {
		if b.TryAcquire(100) {
			t.Error("a leftover takes no room")
		}
	}
	r.uploaded(ledger.Output{Path: "new", Size: 40})
	for _, o := range leftovers[:3] {
		r.uploaded(o)
	}
	// a semaphore panics if it gets back more than it gave
	for _, b := range []*spool.Budget{r.Budget, spools} {
		if !b.TryAcquire(100) || b.TryAcquire(1) {
			t.Error("the budgets got back less than they gave")
		}
	}
}
