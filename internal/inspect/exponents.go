package inspect

import (
	"fmt"
	"html/template"
	"math"
	"slices"
)

// bias is the exponent bias of BF16: exponent e stands for values from 2^(e-bias) on.
const bias = 127

// CodeLine says how the units that have a code for an exponent code it.
type CodeLine struct {
	Exponent          int
	Share             float64 // of all weights
	Shortest, Longest int     // code, in bits
	Mean              float64 // length of the codes, by weights
}

// Power is the exponent of 2 that the stored exponent stands for.
func (l CodeLine) Power() int { return l.Exponent - bias }

// Ideal is the length, in bits, that the exponent's share deserves.
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

// exponents draws how often each exponent occurs, upwards, and how long its code is, downwards.
func (r *Report) exponents() template.HTML {
	const left, top, up, axis, down = 46, 16, 230, 34, 120
	first, last := r.Histogram.Bounds()
	codes := r.codeLines()
	lines := codes[first : last+1]
	s := newSVG("exponents", top+up+axis+down+40, "Exponents and their codes", r.exponentsText())
	step := (chartWidth - left) / float64(len(lines))
	most, longest := 0.0, 1.0
	for _, l := range lines {
		most, longest = max(most, l.Share), max(longest, float64(l.Longest))
	}
	for _, p := range ticks(0, most, 0.2, 0.1, 0.05, 0.02, 0.01)[1:] {
		s.gridLine(left, top+up-p/most*up, fmt.Sprintf("%.0f %%", 100*p))
	}
	base := float64(top + up + axis)
	depth := func(bits float64) float64 { return base + min(bits, longest)/longest*down }
	for _, n := range ticks(0, longest, 8, 4)[1:] {
		s.gridLine(left, depth(n), fmt.Sprintf("%.0f", n))
	}
	every := max(1, int(math.Ceil(34/step)))
	for i, l := range lines {
		x := left + (float64(i)+0.5)*step
		h := l.Share / most * up
		hint := fmt.Sprintf("2^%s: %s of the weights, code of %.1f bits", minus(l.Power()), share(l.Share, 1), l.Mean)
		s.rect("c-e", x-step*0.39, top+up-h, step*0.78, h, hint)
		if l.Longest > 0 {
			s.line("stem", x, base, x, depth(l.Mean))
			s.circle("c-e", x, depth(l.Mean), min(4.5, step*0.3), hint)
		}
		if l.Share > 0 {
			half := min(7, step*0.4)
			s.line("ideal", x-half, depth(l.Ideal()), x+half, depth(l.Ideal()))
		}
		if l.Power()%every == 0 {
			s.power("m small", x, top+up+22, l.Power())
		}
	}
	s.line("axis", left, top+up, chartWidth, top+up)
	s.line("axis", left, base, chartWidth, base)
	s.text("s muted", left+6, top+12, "share of the weights")
	s.text("s muted", left+6, base+down+34, "length of the code in bits")
	s.legend(chartWidth-314, base+down+33, "what its share deserves: −log₂ share")
	return s.done()
}

// exponentsText describes the chart in words.
func (r *Report) exponentsText() string {
	best, distinct, covered := 0, 0, uint64(0)
	for e, n := range r.Histogram {
		if n > 0 {
			distinct++
		}
		if n > r.Histogram[best] {
			best = e
		}
	}
	for _, n := range r.Histogram[max(0, best-3):min(256, best+4)] {
		covered += n
	}
	first, last := r.Histogram.Bounds()
	return fmt.Sprintf("%d different exponents occur, from 2^%d to 2^%d. "+
		"The most frequent is 2^%d; it and the three on each side are %s of all weights.",
		distinct, first-bias, last-bias, best-bias, share(float64(covered), float64(r.Histogram.Total())))
}

// ticks are the multiples of a step from low to high. The step is the first of steps that gives three or more, or the
// last one.
func ticks(low, high float64, steps ...float64) (list []float64) {
	step := steps[len(steps)-1]
	for _, s := range steps {
		if (high-low)/s >= 3 {
			step = s
			break
		}
	}
	for i := math.Ceil(low/step - 1e-9); i*step <= high+1e-9; i++ {
		list = append(list, i*step)
	}
	return list
}
