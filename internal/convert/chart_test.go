package convert

import (
	"math"
	"testing"

	"github.com/df11-convert/df11-convert/internal/describe"
	"github.com/df11-convert/df11-convert/internal/metadata"
)

// TestCountsThatMakeNoSenseAreNotDrawn draws from a journal with exponents that no weight has.
func TestCountsThatMakeNoSenseAreNotDrawn(t *testing.T) {
	for _, first := range []int{math.MaxInt, math.MinInt, -1, 256} {
		x := charted(metadata.Unit{Exponents: &metadata.Exponents{First: first, Counts: []uint64{7}}})
		if x.Histogram != (describe.Unit{}).Histogram {
			t.Errorf("exponent %d is drawn", first)
		}
	}
}
