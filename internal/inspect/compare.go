package inspect

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/df11-convert/df11-convert/internal/human"
)

// Figure is a measure of the model and of the one that it is compared with, as text.
type Figure struct {
	Name        string
	This, Other string
}

// Figures are the measures of both models; none without a compared model.
func (r *Report) Figures() (list []Figure) {
	if r.Compared == nil {
		return nil
	}
	for _, f := range []struct {
		name string
		text func(*Report) string
	}{
		{"weights", func(r *Report) string { return human.Grouped(r.Weights, ",") }},
		{"BF16 size", func(r *Report) string { return human.Bytes(r.BF16Bytes) }},
		{"DF11 size", func(r *Report) string { return human.Bytes(r.DF11Bytes) }},
		{"share of BF16", func(r *Report) string { return share(float64(r.DF11Bytes), float64(r.BF16Bytes)) }},
		{"bits per weight", func(r *Report) string { return fixedOrDash(r.Bits) }},
		{"entropy bound", func(r *Report) string { return fixedOrDash(r.Bound) }},
		{"bits per exponent", func(r *Report) string { return fixedOrDash(r.CodeBits) }},
		{"exponent entropy", func(r *Report) string { return fixedOrDash(r.Entropy) }},
		{"zeros and subnormals", func(r *Report) string { return share(float64(r.Histogram[0]), float64(r.Histogram.Total())) }},
	} {
		list = append(list, Figure{f.name, f.text(r), f.text(r.Compared)})
	}
	return list
}

// fixedOrDash writes a measure, or a dash where it was not measured.
func fixedOrDash(x float64) string {
	if x == 0 {
		return "–"
	}
	return fmt.Sprintf("%.3f", x)
}

// Apart is a unit of both models and how far its distributions of exponents are apart: 0 equal, 1 no exponent in common.
type Apart struct {
	Path     string
	Distance float64
}

// Farthest are the units whose exponents differ most from those of the compared model's unit of the same path, at most n.
func (r *Report) Farthest(n int) (list []Apart) {
	if r.Compared == nil {
		return nil
	}
	other := map[string]*Histogram{}
	for i := range r.Compared.Units {
		other[r.Compared.Units[i].Path] = &r.Compared.Units[i].Histogram
	}
	for i := range r.Units {
		u := &r.Units[i]
		if h := other[u.Path]; h != nil && h.Total() > 0 && u.Histogram.Total() > 0 {
			list = append(list, Apart{u.Path, u.Histogram.distance(h)})
		}
	}
	slices.SortStableFunc(list, func(a, b Apart) int { return cmp.Compare(b.Distance, a.Distance) })
	return list[:min(n, len(list))]
}

// distance is the total variation distance of two distributions that are not empty.
func (h *Histogram) distance(o *Histogram) (sum float64) {
	a, b := float64(h.Total()), float64(o.Total())
	for e := range h {
		sum += math.Abs(float64(h[e])/a - float64(o[e])/b)
	}
	return sum / 2
}
