package describe_test

import (
	"math"
	"testing"

	"github.com/df11-convert/df11-convert/internal/describe"
)

// TestFigures checks entropy and bound of a known histogram, the natural order of units, and that
// Parts.Decoder is everything that is in no other part.
func TestFigures(t *testing.T) {
	r := &describe.Report{DF11Bytes: 5000, Parts: describe.Parts{SignMantissa: 3000, Exponents: 1100, Unchanged: 500}}
	for _, path := range []string{"model.layers.10", "model.layers.2", "lm_head"} {
		u := describe.Unit{Path: path, Weights: 1000, Bytes: 1400, NBits: 2700}
		copy(u.Histogram[115:], []uint64{1, 9, 90, 300, 400, 190, 9, 1})
		u.Finish()
		r.Units = append(r.Units, u)
	}
	r.Finish()
	u := r.Units[1]
	if u.Path != "model.layers.2" || r.Units[2].Path != "model.layers.10" {
		t.Errorf("order: %v", r.Units)
	}
	want := 0.0
	for _, p := range []float64{.001, .009, .09, .3, .4, .19, .009, .001} {
		want -= p * math.Log2(p)
	}
	if math.Abs(u.Entropy-want) > 1e-12 || math.Abs(u.Bound-8-want) > 1e-12 || u.Bits != 11.2 || u.CodeBits != 2.7 || math.Abs(r.Entropy-want) > 1e-12 {
		t.Errorf("entropy %v want %v, bound %v, bits %v, code %v", u.Entropy, want, u.Bound, u.Bits, u.CodeBits)
	}
	if r.Weights != 3000 || r.Read != 3000 || r.Histogram.Total() != 3000 || r.Parts.Decoder != 400 {
		t.Errorf("%d weights, %d read, %d counted, %+v", r.Weights, r.Read, r.Histogram.Total(), r.Parts)
	}
}

// Exponents are split over both bytes, and the sign doesn't matter.
func TestAdd(t *testing.T) {
	var h describe.Histogram
	h.Add([]byte{0x80, 0x3f, 0x00, 0x40, 0x80, 0xbf, 0x00, 0x00})
	if h[127] != 2 || h[128] != 1 || h[0] != 1 || h.Total() != 4 {
		t.Errorf("%v", h)
	}
}
