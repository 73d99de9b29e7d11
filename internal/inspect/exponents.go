package inspect

import (
	"fmt"
	"html/template"
	"math"
	"slices"
)

// CodeLine says how the units that have a code for an exponent code it.
type CodeLine struct {
	Exponent          int
	Share             float64 // of all weights
	Shortest, Longest int     // code, in bits
	Mean              float64 // length of the codes, by weights
}

// Power is the exponent of 2 that the stored exponent stands for.
func (l CodeLine) Power() int { return l.Exponent - bias }

// Ideal is the length, in bits, that a code for one exponent of this share would have if lengths could be fractions.
func (l CodeLine) Ideal() float64 { return -math.Log2(l.Share) }

// CodeTable lists every exponent that has a code in some unit.
func (r *Report) CodeTable() []CodeLine {
	list := r.codeLines()
	return slices.DeleteFunc(list[:], func(l CodeLine) bool { return l.Longest == 0 })
}

// codeLines gathers shares and code lengths of all units by exponent.
func (r *Report) codeLines() (list [256]CodeLine) {
	var weight, bits [256]float64
	for _, u := range r.Units {
		for e, n := range u.Lengths {
			if n == 0 || u.Reason != "" {
				continue
			}
			l := &list[e]
			if l.Shortest == 0 || int(n) < l.Shortest {
				l.Shortest = int(n)
			}
			l.Longest = max(l.Longest, int(n))
			w := 1 + float64(u.Histogram[e])
			weight[e] += w
			bits[e] += w * float64(n)
		}
	}
	total := math.Max(1, float64(r.Histogram.Total()))
	for e := range list {
		l := &list[e]
		l.Exponent, l.Share, l.Mean = e, float64(r.Histogram[e])/total, bits[e]/math.Max(1, weight[e])
	}
	return list
}

// bar is what the charts by exponent show of a column.
type bar struct {
	column
	share, mean float64 // of the weights; of the code, in bits, 0 if there is none
}

// bars gathers the columns of the charts by exponent.
func (r *Report) bars() (list []bar) {
	codes := r.codeLines()
	for _, c := range axis(&r.Histogram) {
		b := bar{column: c}
		if !c.gap {
			b.share = float64(c.count(&r.Histogram)) / math.Max(1, float64(r.Histogram.Total()))
			b.mean = meanLength(codes[c.first : c.last+1])
		}
		list = append(list, b)
	}
	return list
}

// meanLength is the mean code length of some exponents, by weights; 0 if none has a code.
func meanLength(lines []CodeLine) float64 {
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
func (b bar) ideal() float64 { return -math.Log2(b.share) }

// readout says what a column shows.
func (b bar) readout() string {
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
func (r *Report) shares(bars []bar) template.HTML {
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
	return p.done(230, `data-x="e"`, "Share of the weights by exponent. "+r.exponentsText())
}

// lengths draws how long the code of each exponent is, downwards.
func (r *Report) lengths(bars []bar) template.HTML {
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
func (r *Report) exponentsText() string {
	best, distinct, covered := 1, 0, uint64(0)
	for e, n := range r.Histogram {
		if n > 0 && e > 0 {
			distinct++
		}
		if e > 0 && n > r.Histogram[best] {
			best = e
		}
	}
	for _, n := range r.Histogram[max(1, best-3):min(256, best+4)] {
		covered += n
	}
	normal := r.Histogram
	normal[0] = 0
	first, last := normal.bounds()
	text := "All weights are zeros or subnormals."
	if distinct > 0 {
		text = fmt.Sprintf("%d exponents occur, from %s to %s. The most frequent is %s; it and the three on each side hold %s of all weights.",
			distinct, power(first-bias), power(last-bias), power(best-bias), share(float64(covered), float64(r.Histogram.Total())))
	}
	if n := r.Histogram[0]; n > 0 && distinct > 0 {
		text += " ±0 and subnormals are " + share(float64(n), float64(r.Histogram.Total())) + "."
	}
	return text
}
