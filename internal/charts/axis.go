package charts

import (
	"strings"

	"github.com/df11-convert/df11-convert/internal/describe"
)

// bias is the exponent bias of BF16: exponent e stands for values from 2^(e-bias) on. Exponent 0 stands for zeros and
// subnormals.
const bias = 127

// column is a place on the axis of exponents: the exponents from first to last, or a break of the axis.
type column struct {
	first, last int
	gap         bool
}

// emptyRun is the number of exponents in a row that a break replaces if no weight has them.
const emptyRun = 3

// axis lists the columns of the charts by exponent. Zeros and subnormals, rare exponents at both ends, and exponents beyond a
// run that does not occur stand apart, so that a few odd weights cannot empty a chart.
func axis(h *describe.Histogram) (list []column) {
	add := func(first, last int) {
		if n := len(list); n > 0 && (first-list[n-1].last > emptyRun || list[n-1].last == 0 || list[n-1].first < list[n-1].last || first < last) {
			list = append(list, column{gap: true})
		}
		list = append(list, column{first: first, last: last})
	}
	if h[0] > 0 {
		add(0, 0)
	}
	normal := *h
	normal[0] = 0
	low, high := normal.Bounds()
	first, last := frequent(&normal)
	if low < first {
		add(low, first-1)
	}
	for e := first; e <= last; e++ {
		if e == first || h[e] > 0 || near(&normal, e) {
			add(e, e)
		}
	}
	if last < high {
		add(last+1, high)
	}
	return list
}

// frequent are the first and the last exponent that at least one weight in 100,000 has. One or two beyond them are
// taken as well, since a column for all beyond would save nothing.
func frequent(h *describe.Histogram) (first, last int) {
	low, high := h.Bounds()
	first, last = low, high
	rare := h.Total() / 100_000
	for first < last && h[first] < rare {
		first++
	}
	for last > first && h[last] < rare {
		last--
	}
	if first-low <= 2 {
		first = low
	}
	if high-last <= 2 {
		last = high
	}
	return first, last
}

// near reports whether an exponent that does not occur lies in a short run of such.
func near(h *describe.Histogram, e int) bool {
	from, to := e, e
	for from > 0 && h[from] == 0 {
		from--
	}
	for to < len(h)-1 && h[to] == 0 {
		to++
	}
	return to-from <= emptyRun
}

// count is the number of weights of a column.
func (c column) count(h *describe.Histogram) (n uint64) {
	if c.gap {
		return 0
	}
	for _, k := range h[c.first : c.last+1] {
		n += k
	}
	return n
}

// single reports whether the column is one exponent of normal numbers.
func (c column) single() bool { return !c.gap && c.first == c.last && c.first > 0 }

// String names the column in a sentence.
func (c column) String() string {
	switch {
	case c.gap:
		return ""
	case c.last == 0:
		return "±0 and subnormals (below " + power(-126) + ")"
	case c.single():
		return power(c.first - bias)
	}
	return power(c.first-bias) + " to " + power(c.last-bias)
}

// ticks are the columns that get a label, at least every columns apart: powers that are multiples of every, and what stands
// apart.
func ticks(axis []column, every int) []bool {
	at := make([]bool, len(axis))
	next := 0
	for i, c := range axis {
		apart := !c.gap && (!c.single() || i == 0 || axis[i-1].gap)
		if i >= next && !c.gap && (apart || (c.first-bias)%every == 0) {
			at[i], next = true, i+every
			if !c.single() {
				next = i + (every+1)/2 // its label is short
			}
		}
	}
	return at
}

// short is the label of a column that is no single exponent.
func (c column) short(axis []column) string {
	switch {
	case c.last == 0:
		return "0"
	case c.first == axis[len(axis)-1].first:
		return ">"
	}
	return "<"
}

// axisNote explains the labels that are no powers.
func axisNote(axis []column) string {
	var notes []string
	for _, c := range axis {
		if !c.gap && !c.single() {
			notes = append(notes, c.short(axis)+" = "+c.String())
		}
	}
	return strings.Join(notes, "; ")
}
