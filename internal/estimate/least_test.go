package estimate

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/safetensors"
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
		least := want.least(outputs, segments)
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

// TestRequestsFollowTheClientsRanges: a client that asks for less at a time asks more often.
func TestRequestsFollowTheClientsRanges(t *testing.T) {
	m := &model.Model{}
	m.Listing.Weights = []plan.WeightFile{{File: plan.File{Size: 20 * mb}, Header: &safetensors.Header{}}}
	p := &plan.Plan{Copied: []plan.File{{Size: mb + 1}}}
	const others = 5 // the repo, where both files lie, the header
	for ranges, want := range map[int64]int64{8 * mb: 3 + 1, 2 * mb: 10 + 1, mb: 20 + 2} {
		if got := (Budget{RangeBytes: ranges}).downloadRequests(m, p); got != want+others {
			t.Errorf("ranges of %d: %d requests, want %d", ranges, got, want+others)
		}
	}
}

// TestNoMoreIsFetchedAheadThanThereIs: the ranges that are fetched ahead of a Hub's file take memory up to what the client holds
// at most, and no more than the file has.
func TestNoMoreIsFetchedAheadThanThereIs(t *testing.T) {
	memory := func(b Budget, sizes ...int64) int64 {
		m := &model.Model{}
		for _, size := range sizes {
			m.Listing.Weights = append(m.Listing.Weights, plan.WeightFile{File: plan.File{Size: size}, Header: &safetensors.Header{}})
		}
		b.Buffers = 256 * mb
		return b.buffers(m, 0, 0)
	}
	none := memory(Budget{})
	for _, c := range []struct {
		sizes []int64
		ahead int64
	}{
		{[]int64{mb}, mb},
		{[]int64{mb, 50 * mb, mb}, 50 * mb},
		{[]int64{5 << 30, mb}, 256 * mb},
	} {
		if got := memory(Budget{}, c.sizes...) - none; got != c.ahead+c.ahead/5 {
			t.Errorf("files of %d: %d for what is ahead, want %d", c.sizes, got, c.ahead+c.ahead/5)
		}
	}
}
