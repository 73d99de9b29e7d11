package inspect

import (
	"fmt"
	"html/template"
	"math"
)

// bias is the exponent bias of BF16: exponent e stands for values from 2^(e-bias) on.
const bias = 127

// codeRange says how long the codes of an exponent are in the units that have a code for it.
type codeRange struct {
	shortest, longest int
	mean              float64 // by weights
}

// codeRanges gathers the code lengths of all units by exponent.
func (r *Report) codeRanges() (list [256]codeRange) {
	var weight, bits [256]float64
	for _, u := range r.Units {
		for e, n := range u.Lengths {
			if n == 0 || u.Reason != "" {
				continue
			}
			c := &list[e]
			if c.shortest == 0 || int(n) < c.shortest {
				c.shortest = int(n)
			}
			c.longest = max(c.longest, int(n))
			w := 1 + float64(u.Histogram[e])
			weight[e] += w
			bits[e] += w * float64(n)
		}
	}
	for e := range list {
		if weight[e] > 0 {
			list[e].mean = bits[e] / weight[e]
		}
	}
	return list
}

// exponents draws how often each exponent occurs, upwards, and how long its code is, downwards.
func (r *Report) exponents() template.HTML {
	const left, top, up, axis, down = 46, 16, 230, 34, 120
	codes := r.codeRanges()
	first, last := r.Histogram.Bounds()
	total := float64(r.Histogram.Total())
	s := newSVG("exponents", top+up+axis+down+40, "Exponents and their codes", r.exponentsText())
	step := (chartWidth - left) / float64(last-first+1)
	var most float64
	longest := 1
	for e := first; e <= last; e++ {
		most, longest = max(most, float64(r.Histogram[e])/total), max(longest, codes[e].longest)
	}
	for _, p := range ticks(0, most, 0.2, 0.1, 0.05, 0.02, 0.01)[1:] {
		s.gridLine(left, top+up-p/most*up, fmt.Sprintf("%.0f %%", 100*p))
	}
	base := float64(top + up + axis)
	for _, n := range ticks(0, float64(longest), 8, 4)[1:] {
		s.gridLine(left, base+n/float64(longest)*down, fmt.Sprintf("%.0f", n))
	}
	every := max(1, int(math.Ceil(34/step)))
	for e := first; e <= last; e++ {
		x := left + (float64(e-first)+0.5)*step
		p := float64(r.Histogram[e]) / total
		h := p / most * up
		hint := fmt.Sprintf("2^%s: %s of the weights, code of %.1f bits", minus(e-bias), share(p, 1), codes[e].mean)
		s.rect("c-e", x-step*0.39, top+up-h, step*0.78, h, hint)
		if codes[e].longest > 0 {
			y := base + codes[e].mean/float64(longest)*down
			s.line("stem", x, base, x, y)
			s.circle("c-e", x, y, min(4.5, step*0.3), hint)
		}
		if p > 0 {
			y, half := base+min(float64(longest), -math.Log2(p))/float64(longest)*down, min(7, step*0.4)
			s.line("ideal", x-half, y, x+half, y)
		}
		if (e-bias)%every == 0 {
			s.power("m small", x, top+up+22, e-bias)
		}
	}
	s.line("axis", left, top+up, chartWidth, top+up)
	s.line("axis", left, base, chartWidth, base)
	s.text("s muted", left+6, top+12, "share of the weights")
	s.text("s muted", left+6, base+down+34, "length of the code in bits")
	s.circle("c-e", chartWidth-314, base+down+29, 4.5, "")
	s.text("s small muted", chartWidth-304, base+down+33, "stored")
	s.line("ideal", chartWidth-248, base+down+29, chartWidth-234, base+down+29)
	s.text("s small muted", chartWidth-228, base+down+33, "what its share deserves: −log₂ share")
	return s.done()
}

// exponentsText describes the chart in words.
func (r *Report) exponentsText() string {
	best, covered := 0, uint64(0)
	for e, n := range r.Histogram {
		if n > r.Histogram[best] {
			best = e
		}
	}
	for e := max(0, best-3); e <= min(255, best+3); e++ {
		covered += r.Histogram[e]
	}
	first, last := r.Histogram.Bounds()
	return fmt.Sprintf("%d different exponents occur, from 2^%d to 2^%d. The most frequent is 2^%d; it and the three on each side are %s of all weights.",
		distinct(&r.Histogram), first-bias, last-bias, best-bias, share(float64(covered), float64(r.Histogram.Total())))
}

func distinct(h *Histogram) (n int) {
	for _, c := range h {
		if c > 0 {
			n++
		}
	}
	return n
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
