package charts

import (
	"fmt"
	"html/template"
	"math"

	"github.com/df11-convert/df11-convert/internal/describe"
)

// codeLine says how the units that have a code for an exponent code it.
type codeLine struct {
	Exponent          int
	Share             float64 // of all weights
	Shortest, Longest int     // code, in bits
	Mean              float64 // length of the codes, by weights
}

// Power is the exponent of 2 that the stored exponent stands for.
func (l codeLine) Power() int { return l.Exponent - bias }

// Ideal is the length, in bits, that a code for one exponent of this share would have if lengths could be fractions.
func (l codeLine) Ideal() float64 { return -math.Log2(l.Share) }

// codeLines gathers shares and code lengths of all units by exponent.
func codeLines(r *describe.Report) (list [256]codeLine) {
	var weight, bits [256]float64
	for _, u := range r.Units {
		if u.Reason != "" {
			continue
		}
		for _, c := range u.Codes {
			l := &list[c.Exponent]
			if l.Shortest == 0 || c.Bits < l.Shortest {
				l.Shortest = c.Bits
			}
			l.Longest = max(l.Longest, c.Bits)
			w := 1 + float64(u.Histogram[c.Exponent])
			weight[c.Exponent] += w
			bits[c.Exponent] += w * float64(c.Bits)
		}
	}
	total := math.Max(1, float64(r.Histogram.Total()))
	for e := range list {
		l := &list[e]
		l.Exponent, l.Share, l.Mean = e, float64(r.Histogram[e])/total, bits[e]/math.Max(1, weight[e])
	}
	return list
}

// exponentBar is what the charts by exponent show of a column.
type exponentBar struct {
	column
	share, mean float64 // of the weights; of the code, in bits, 0 if there is none
}

// exponentBars gives what the charts show of each column.
func exponentBars(r *describe.Report, columns []column) (list []exponentBar) {
	codes := codeLines(r)
	for _, c := range columns {
		b := exponentBar{column: c}
		if !c.gap {
			b.share = float64(c.count(&r.Histogram)) / math.Max(1, float64(r.Histogram.Total()))
			b.mean = meanLength(codes[c.first : c.last+1])
		}
		list = append(list, b)
	}
	return list
}

// meanLength is the mean code length of some exponents, by weights; 0 if none has a code.
func meanLength(lines []codeLine) float64 {
	var weight, bits float64
	for _, l := range lines {
		if l.Longest > 0 {
			w := l.Share + 1e-12
			weight, bits = weight+w, bits+w*l.Mean
		}
	}
	if weight == 0 {
		return 0
	}
	return bits / weight
}

// ideal is the length in bits that the column's exponent would have if lengths could be fractions.
func (b exponentBar) ideal() float64 { return -math.Log2(b.share) }

// readout says what a column shows.
func (b exponentBar) readout() string {
	if b.gap {
		return ""
	}
	text := b.String() + ": " + share(b.share, 1) + " of the weights"
	if b.mean > 0 {
		text += fmt.Sprintf(", code of %.1f bits", b.mean)
	}
	if b.share > 0 && b.first == b.last {
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
	return p.done(230, `data-x="e"`, "Share of the weights by exponent. "+exponentsText(r))
}

// lengths draws how long the code of each exponent is, downwards.
func lengths(bars []exponentBar) template.HTML {
	p := plot{slots: len(bars)}
	longest := 1.0
	for _, b := range bars {
		longest = max(longest, b.mean)
		if b.share > 0 && b.first == b.last {
			longest = max(longest, b.ideal())
		}
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
		if b.share > 0 && b.first == b.last {
			ideals += dash(x, 0.4, depth(b.ideal()))
		}
	}
	p.path("stem", stems)
	p.path("ideal", ideals)
	p.path("dot", dots)
	return p.done(130, `data-x="e"`, "Length of the code by exponent, in bits, and the ideal length")
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
