package charts

import (
	"strconv"
	"strings"

	"github.com/df11-convert/df11-convert/internal/describe"
)

// bias is the exponent bias of BF16. Values with exponent e are at least 2^(e-bias); exponent 0
// holds zeros and subnormals.
const bias = 127

// column is a column of the chart: exponents first to last. label is "" if it's a single exponent.
type column struct {
	first, last int
	label       string
}

// axis lists the columns of the chart by exponent. Around the most frequent exponent, each exponent
// that at least one weight in 100,000 has gets a column. One more column holds all exponents below,
// including zeros, and one holds all above. So a few odd weights can't empty a chart.
func axis(h *describe.Histogram) (list []column) {
	best := 1
	for e := 2; e < len(h); e++ {
		if h[e] > h[best] {
			best = e
		}
	}
	least := max(1, h.Total()/100_000)
	first, last := best, best
	for first > 1 && h[first-1] >= least {
		first--
	}
	for last < len(h)-1 && h[last+1] >= least {
		last++
	}
	low, high := h.Bounds()
	if low < first {
		list = append(list, column{low, first - 1, "<"})
	}
	for e := first; e <= last; e++ {
		list = append(list, column{e, e, ""})
	}
	if last < high {
		list = append(list, column{last + 1, high, ">"})
	}
	return list
}

// count returns the number of weights in a column.
func (c column) count(h *describe.Histogram) (n uint64) {
	for _, k := range h[c.first : c.last+1] {
		n += k
	}
	return n
}

// String names the column in words.
func (c column) String() string {
	switch {
	case c.first == 0:
		return "below " + power(c.last+1-bias) + ", with zeros"
	case c.first == c.last:
		return power(c.first - bias)
	}
	return power(c.first-bias) + " to " + power(c.last-bias)
}

// labeled reports whether a column gets a label: if it has several exponents, or if its power is a
// multiple of every and isn't too close to such a column.
func labeled(axis []column, i, every int) bool {
	near := func(j int) bool { return axis[j].label != "" && max(i-j, j-i) <= every/2 }
	return axis[i].label != "" || (axis[i].first-bias)%every == 0 && !near(0) && !near(len(axis)-1)
}

// power formats a power of 2.
func power(exponent int) string { return "2" + superscript.Replace(strconv.Itoa(exponent)) }

var superscript = strings.NewReplacer("-", "⁻", "0", "⁰", "1", "¹", "2", "²", "3", "³", "4", "⁴",
	"5", "⁵", "6", "⁶", "7", "⁷", "8", "⁸", "9", "⁹")
