package charts

import (
	"fmt"
	"html/template"
	"math"

	"github.com/df11-convert/df11-convert/internal/describe"
)

// exponentBar is what the charts by exponent show of a column.
type exponentBar struct {
	column
	share, mean float64 // of the weights; of the code, in bits, 0 if there is none
}

// exponentBars gives what the charts show of each column. The mean length of a code goes over all units that have one, by weights.
func exponentBars(r *describe.Report, columns []column) (list []exponentBar) {
	var weight, bits [256]float64
	for _, u := range r.Units {
		if u.Reason != "" {
			continue
		}
		for _, c := range u.Codes {
			w := 1 + float64(u.Histogram[c.Exponent])
			weight[c.Exponent] += w
			bits[c.Exponent] += w * float64(c.Bits)
		}
	}
	for _, c := range columns {
		b := exponentBar{column: c, share: float64(c.count(&r.Histogram)) / math.Max(1, float64(r.Histogram.Total()))}
		var w float64
		for e := c.first; e <= c.last; e++ {
			w, b.mean = w+weight[e], b.mean+bits[e]
		}
		b.mean /= math.Max(1, w)
		list = append(list, b)
	}
	return list
}

// ideal is the length in bits that the code of the column's exponent would have if lengths could be fractions; 0 where it means
// nothing.
func (b exponentBar) ideal() float64 {
	if b.share == 0 || b.label != "" {
		return 0
	}
	return -math.Log2(b.share)
}

// readout says what a column shows.
func (b exponentBar) readout() string {
	text := b.String() + ": " + share(b.share, 1) + " of the weights"
	if b.mean > 0 {
		text += fmt.Sprintf(", code of %.1f bits", b.mean)
	}
	if b.ideal() > 0 {
		text += fmt.Sprintf(", ideal %.1f", b.ideal())
	}
	return text
}

// shares draws how often each exponent occurs.
func shares(r *describe.Report, bars []exponentBar) template.HTML {
	p := plot{slots: len(bars)}
	most := 0.01
	for _, b := range bars {
		most = max(most, b.share)
	}
	most *= 1.04
	for _, v := range levels(0, most, 0.2, 0.1, 0.05, 0.02, 0.01) {
		p.level(100-100*v/most, fmt.Sprintf("%.0f %%", 100*v))
	}
	var shapes string
	for i, b := range bars {
		if b.share > 0 {
			h := max(0.6, 100*b.share/most) // what occurs is seen
			shapes += box(float64(i)+0.11, 100-h, 0.78, h)
		}
	}
	p.path("c-e", shapes)
	return p.done(230, "e", "Share of the weights by exponent. "+exponentsText(r))
}

// lengths draws how long the code of each exponent is, downwards.
func lengths(bars []exponentBar) template.HTML {
	p := plot{slots: len(bars)}
	longest := 1.0
	for _, b := range bars {
		longest = max(longest, b.mean, b.ideal())
	}
	depth := func(bits float64) float64 { return 94 * bits / longest }
	for _, n := range levels(0, longest, 8, 4, 2)[1:] {
		p.level(depth(n), fmt.Sprintf("%.0f", n))
	}
	var stems, dots, ideals string
	for i, b := range bars {
		x := float64(i) + 0.5
		if b.mean > 0 {
			stems += fmt.Sprintf("M%s 0V%s", num(x), num(depth(b.mean)))
			dots += dot(x, depth(b.mean))
		}
		if b.ideal() > 0 {
			ideals += dash(x, 0.4, depth(b.ideal()))
		}
	}
	p.path("stem", stems)
	p.path("ideal", ideals)
	p.path("dot", dots)
	return p.done(130, "e", "Length of the code by exponent, in bits, and the ideal length")
}

// exponentsText describes the distribution in words.
func exponentsText(r *describe.Report) string {
	normal := r.Histogram
	normal[0] = 0
	first, last := normal.Bounds()
	if last < 0 {
		return "All weights are zeros or subnormals."
	}
	best := first
	for e, n := range normal {
		if n > normal[best] {
			best = e
		}
	}
	text := fmt.Sprintf("Exponents go from %s to %s; the most frequent is %s.", power(first-bias), power(last-bias), power(best-bias))
	if n := r.Histogram[0]; n > 0 {
		text += " ±0 and subnormals are " + share(float64(n), float64(r.Histogram.Total())) + "."
	}
	return text
}
