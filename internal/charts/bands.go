package charts

import (
	"fmt"
	"image/color"
	"strings"

	"github.com/df11-convert/df11-convert/internal/describe"
	"github.com/df11-convert/df11-convert/internal/human"
)

// band is one colored stretch of a bar. Pages give its class their own colors.
type band struct {
	describe.Part
	class string
	color color.NRGBA
}

// before returns the bands of the model in BF16, which no legend names. The bytes that stay the same
// come first, so that only the exponents seem to shrink.
func before(r *describe.Report) []band {
	return []band{
		{describe.Part{Bytes: r.Weights}, "same", silver},
		{describe.Part{Bytes: r.Weights}, "moved", teal},
		{describe.Part{Bytes: max(0, r.BF16Bytes-2*r.Weights)}, "rest", violet},
	}
}

// after returns the bands of the model in DF11.
func after(r *describe.Report) []band {
	p := r.Parts.List()
	return []band{{p[0], "same", silver}, {p[1], "moved", teal},
		{p[2], "decoder", orange}, {p[3], "rest", violet}}
}

// Drawing returns both sizes as bars with a legend, as markup for a page. Lengths are shares of the
// width, so letters keep their size on a phone, and colors are the page's. It holds numbers and
// words of ours, and no name.
func Drawing(r *describe.Report) string {
	from, to, whole := before(r), after(r), max(1, r.BF16Bytes, r.DF11Bytes)
	percent := func(n int64) float64 { return 100 * float64(n) / float64(whole) }
	var b strings.Builder
	bar := func(bands []band, y int) (ends []float64) {
		var end int64
		for _, x := range bands {
			if x.Bytes > 0 {
				fmt.Fprintf(&b, `<rect class="%s" x="%.3f%%" y="%d" width="%.3f%%" height="30"/>`,
					x.class, percent(end), y, percent(x.Bytes))
			}
			end += x.Bytes
			ends = append(ends, percent(end))
		}
		return ends
	}
	fmt.Fprintf(&b, `<svg class="bars" height="132" role="img" aria-label="%s in BF16, %s in DF11: `+
		`the exponents take %s instead of %s">`, human.Bytes(r.BF16Bytes), human.Bytes(r.DF11Bytes),
		human.Bytes(to[1].Bytes), human.Bytes(from[1].Bytes))
	fmt.Fprintf(&b, `<text y="12">BF16 %s</text>`, human.Bytes(r.BF16Bytes))
	top := bar(from, 20)
	bottom := bar(to, 74)
	fmt.Fprintf(&b, `<svg viewBox="0 0 100 10" preserveAspectRatio="none" y="50" height="24">`+
		`<polygon class="flow" points="%.2f,0 %.2f,0 %.2f,10 %.2f,10"/></svg>`, top[0], top[1],
		bottom[1], bottom[0])
	fmt.Fprintf(&b, `<text y="106" dy="1em">DF11 %s</text></svg><ul class="legend">`, human.Bytes(r.DF11Bytes))
	for _, x := range to {
		if x.Bytes > 0 {
			fmt.Fprintf(&b, `<li><svg viewBox="0 0 10 10"><rect class="%s" width="10" height="10"/>`+
				`</svg>%s %s</li>`, x.class, x.Name, human.Bytes(x.Bytes))
		}
	}
	b.WriteString("</ul>")
	return b.String()
}

// share formats part of whole in percent.
func share(part, whole int64) string {
	p := 100 * float64(part) / float64(max(1, whole))
	switch {
	case p > 0 && p < 0.01:
		return "< 0.01%"
	case p < 10:
		return fmt.Sprintf("%.2f%%", p)
	}
	return fmt.Sprintf("%.1f%%", p)
}
