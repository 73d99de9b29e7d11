package estimate

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/df11-convert/df11-convert/internal/spans"
)

// TestLeastDiskIsTheLeast: with the budget that plans and errors name a conversion can be laid out, with a byte less it cannot,
// and that error names the same budget.
func TestLeastDiskIsTheLeast(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	for range 300 {
		var sizes []int64
		for range 1 + rng.IntN(5) {
			sizes = append(sizes, 1+rng.Int64N(20*mb))
		}
		outputs, segments := nested(sizes...)
		local := rng.IntN(4) == 0
		want := Demand{Spooled: func(*spans.Output) bool { return !local }, Outputs: rng.IntN(2) == 0, Memory: rng.Int64N(20*mb) - 1}
		least := want.least(outputs)
		if want.Disk = least; least > 0 {
			if _, err := Divide(outputs, segments, want); err != nil {
				t.Fatalf("%d with %+v: %v", sizes, want, err)
			}
		}
		tooSmall := (*BudgetError)(nil)
		if want.Disk = least - 1; least > 1 {
			if _, err := Divide(outputs, segments, want); !errors.As(err, &tooSmall) || tooSmall.Need != least {
				t.Fatalf("%d with %+v: %v, want %d", sizes, want, err, least)
			}
		}
	}
}
