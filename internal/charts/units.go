package charts

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/describe"
)

// chartUnits are the units that the chart by unit shows: the compressed ones whose weights were read, in reading order, single
// units first.
func chartUnits(r *describe.Report) []*describe.Unit {
	var single, stacked []*describe.Unit
	for i := range r.Units {
		switch u := &r.Units[i]; {
		case u.Reason != "" || u.Histogram.Total() == 0:
		case strings.ContainsAny(u.Path, "0123456789"):
			stacked = append(stacked, u)
		default:
			single = append(single, u)
		}
	}
	return append(single, stacked...)
}

// slots are the places of units on the x axis: each has one, and an empty one lies between runs of units whose paths differ
// only in numbers.
type slots struct {
	units []*describe.Unit // nil in an empty slot
	runs  []run
}

// run is a run of slots under one label.
type run struct {
	name        string
	first, last int
}

// fewest is the least number of slots, so that a model of few units has no broad ones.
const fewest = 8

var numbers = regexp.MustCompile(`\d+`)

func newSlots(units []*describe.Unit) slots {
	var s slots
	kind := ""
	for i, u := range units {
		k := numbers.ReplaceAllString(u.Path, "#")
		if k != kind || k == u.Path {
			if i > 0 {
				s.units = append(s.units, nil)
			}
			s.runs = append(s.runs, run{first: len(s.units)})
		}
		kind = k
		s.runs[len(s.runs)-1].last = len(s.units)
		s.units = append(s.units, u)
	}
	for i := range s.runs {
		x := &s.runs[i]
		x.name = RunName(s.units[x.first].Path, s.units[x.last].Path)
	}
	for len(s.units) < fewest {
		s.units = append(s.units, nil)
	}
	return s
}

// maxNamed is the most runs with labels: each takes a line below the plot.
const maxNamed = 6

// named are the runs that get a label: all if they are few, else the longest. A read-out names every unit.
func (s *slots) named() []run {
	if len(s.runs) <= maxNamed {
		return s.runs
	}
	list := slices.Clone(s.runs)
	slices.SortStableFunc(list, func(a, b run) int { return cmp.Compare(b.last-b.first, a.last-a.first) })
	list = list[:maxNamed]
	slices.SortFunc(list, func(a, b run) int { return cmp.Compare(a.first, b.first) })
	return list
}

// RunName makes "model.layers.0–31" of the paths of the first and the last module of a run of modules that are alike.
func RunName(first, last string) string {
	kind := numbers.ReplaceAllString(first, "#")
	switch {
	case first == last:
		return first
	case strings.Count(kind, "#") > 1:
		return first + " …"
	}
	return strings.Replace(kind, "#", numbers.FindString(first)+"–"+numbers.FindString(last), 1)
}

// bits draws for each unit the bits that a weight takes, and the bound.
func (s *slots) bits(r *describe.Report) template.HTML {
	low, high := math.Inf(1), math.Inf(-1)
	for _, u := range s.units {
		if u != nil {
			low, high = min(low, u.Bound, u.Bits), max(high, u.Bits, u.Bound)
		}
	}
	text := fmt.Sprintf("Bits per weight by module: between %.2f and %.2f with everything that is stored. The mean is %.3f, the order-0 entropy bound %.3f.",
		low, high, r.Bits, r.Bound)
	low, high = math.Floor(low*10-0.5)/10, math.Ceil(high*10+0.5)/10
	y := func(bits float64) float64 { return 100 * (high - bits) / (high - low) }
	p := plot{slots: len(s.units)}
	for _, v := range levels(low, high, 2, 1, 0.5, 0.2, 0.1) {
		p.level(y(v), fmt.Sprintf("%.1f", v))
	}
	var stems, bounds, dots strings.Builder
	for i, u := range s.units {
		if u == nil {
			continue
		}
		x := float64(i) + 0.5
		fmt.Fprintf(&stems, "M%s %sV%s", num(x), num(y(u.Bound)), num(y(u.Bits)))
		bounds.WriteString(dash(x, 0.36, y(u.Bound)))
		dots.WriteString(dot(x, y(u.Bits)))
	}
	p.path("stem", stems.String())
	p.path("ideal", bounds.String())
	p.path("dot", dots.String())
	return p.done(190, "u", text)
}
