package inspect

import (
	"fmt"
	"html/template"
	"math"
	"regexp"
	"slices"
	"strings"
)

// chartUnits are the units that charts by unit show: the compressed ones whose weights were read, in reading order, single
// units first.
func (r *Report) chartUnits() []Unit {
	var single, stacked []Unit
	for _, u := range r.Units {
		switch {
		case u.Reason != "" || u.Histogram.Total() == 0:
		case strings.ContainsAny(u.Path, "0123456789"):
			stacked = append(stacked, u)
		default:
			single = append(single, u)
		}
	}
	return append(single, stacked...)
}

// stack is a run of units whose paths differ only in numbers.
type stack struct {
	kind        string // the paths, with # for each number
	name        string
	first, last int // indices in chartUnits
}

var numbers = regexp.MustCompile(`\d+`)

// stacks groups neighbors whose paths differ only in numbers.
func stacks(units []Unit) []stack {
	var list []stack
	for i, u := range units {
		kind := numbers.ReplaceAllString(u.Path, "#")
		if n := len(list); n > 0 && kind == list[n-1].kind && kind != u.Path {
			list[n-1].last = i
		} else {
			list = append(list, stack{kind: kind, first: i, last: i})
		}
	}
	for i := range list {
		list[i].setName(units[list[i].first].Path, units[list[i].last].Path)
	}
	return list
}

// setName makes "model.layers.0 – 31" of the paths of the first and the last unit.
func (s *stack) setName(first, last string) {
	switch {
	case s.first == s.last:
		s.name = first
	case strings.Count(s.kind, "#") > 1:
		s.name = first + " …"
	default:
		s.name = strings.Replace(s.kind, "#", numbers.FindString(first)+" – "+numbers.FindString(last), 1)
	}
}

// columns says where units stand on the x axis, with room between stacks.
type columns struct {
	stacks []stack
	x      []float64 // the middle of each unit
	step   float64
}

func newColumns(units []Unit, left float64) columns {
	c := columns{stacks: stacks(units), x: make([]float64, len(units))}
	slots := float64(len(units)) + 0.8*float64(len(c.stacks)-1)
	c.step = min(110, (chartWidth-left)/slots)
	at := left
	for _, s := range c.stacks {
		for i := s.first; i <= s.last; i++ {
			c.x[i] = at + c.step/2
			at += c.step
		}
		at += 0.8 * c.step
	}
	return c
}

// label writes the names of the stacks under brackets at height y, on as many rows as they need, three at most.
func (c *columns) label(s *svg, y float64) {
	var ends []float64 // of the rows
	for _, st := range c.stacks {
		a, b := c.x[st.first]-c.step*0.4, c.x[st.last]+c.step*0.4
		s.line("axis", a, y, b, y)
		w := textWidth(st.name)
		from := min(max(0, (a+b-w)/2), chartWidth-w)
		row := 0
		for row < len(ends) && ends[row] > from-12 {
			row++
		}
		if row == len(ends) {
			ends = append(ends, 0)
		}
		ends[row] = from + w
		if row > 2 {
			continue
		}
		if row > 0 {
			s.line("grid", (a+b)/2, y, (a+b)/2, y+float64(16*row)+4)
		}
		s.text("s small", from, y+16+float64(16*row), st.name)
	}
}

// layers draws for each unit the bits that a weight takes, and the bound.
func (r *Report) layers() template.HTML {
	const left, top, height = 46, 30, 220
	units := r.chartUnits()
	cols := newColumns(units, left)
	var bits, bounds []float64
	for _, u := range units {
		bits, bounds = append(bits, u.Bits), append(bounds, u.Bound)
	}
	low, high := math.Floor(slices.Min(bounds)*10-0.5)/10, math.Ceil(slices.Max(bits)*10+0.5)/10
	y := func(bits float64) float64 { return top + height*(high-bits)/(high-low) }
	s := newSVG("layers", top+height+72, "Bits per weight by unit", fmt.Sprintf(
		"Every unit takes between %.2f and %.2f bits per weight; Shannon's bound lies between %.2f and %.2f. The mean is %.3f against a bound of %.3f.",
		slices.Min(bits), slices.Max(bits), slices.Min(bounds), slices.Max(bounds), r.Bits, r.Bound))
	for _, bits := range ticks(low, high, 2, 1, 0.5, 0.2, 0.1) {
		s.gridLine(left, y(bits), fmt.Sprintf("%.1f", bits))
	}
	radius := min(5, max(1.6, cols.step*0.3))
	for i, u := range units {
		x := cols.x[i]
		s.line("stem", x, y(u.Bound), x, y(u.Bits))
		s.line("ideal", x-radius*1.2, y(u.Bound), x+radius*1.2, y(u.Bound))
		s.circle("c-e", x, y(u.Bits), radius, fmt.Sprintf("%s: %.3f bits per weight, bound %.3f", u.Path, u.Bits, u.Bound))
	}
	s.text("s muted", left, 14, "bits per weight, of 16 in BF16")
	s.legend(chartWidth-190, 14, "Shannon's bound")
	cols.label(s, top+height+10)
	return s.done()
}

// shades is the number of tones of the heat map.
const shades = 24

// heat draws the distribution of exponents of each unit as a column.
func (r *Report) heat() template.HTML {
	const left, top = 46, 8
	units := r.chartUnits()
	cols := newColumns(units, left)
	first, last := r.visible()
	cell := min(16, max(4, 260/float64(last-first+1)))
	height := cell * float64(last-first+1)
	s := newSVG("heat", top+height+72, "Exponents by unit", "Each column is a unit, each row an exponent; the darker, the more weights have it. "+r.exponentsText())
	width := num(cols.step + 0.3)
	var paths [shades + 1]strings.Builder
	for i := range units {
		total := float64(units[i].Histogram.Total())
		for e := first; e <= last; e++ {
			tone := int(math.Ceil(shades * math.Sqrt(min(1, float64(units[i].Histogram[e])/total/0.3))))
			if tone > 0 {
				fmt.Fprintf(&paths[tone], "M%s %sh%sv%sh-%sz", num(cols.x[i]-cols.step/2), num(top+float64(last-e)*cell), width, num(cell+0.3), width)
			}
		}
	}
	for tone := range paths {
		if paths[tone].Len() > 0 {
			fmt.Fprintf(&s.b, `<path class="c-e" fill-opacity="%.2f" d="%s"/>`, float64(tone)/shades, paths[tone].String())
		}
	}
	every := max(1, int(math.Ceil(22/cell)))
	for e := first; e <= last; e++ {
		if (e-bias)%every == 0 {
			s.power("e small", left-6, top+(float64(last-e)+0.5)*cell+5, e-bias)
		}
	}
	cols.label(s, top+height+10)
	return s.done()
}

// visible are the exponents that at least one weight in 100,000 has.
func (r *Report) visible() (first, last int) {
	first, last = r.Histogram.Bounds()
	rare := r.Histogram.Total() / 100_000
	for first < last && r.Histogram[first] < rare {
		first++
	}
	for last > first && r.Histogram[last] < rare {
		last--
	}
	return first, last
}
