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
	var b strings.Builder
	bar := func(name string, bands []band, y int) {
		fmt.Fprintf(&b, `<text y="%d">%s</text>`, y-8, name)
		end := 0.0
		for _, x := range bands {
			width := human.Percentage(x.Bytes, whole)
			fmt.Fprintf(&b, `<rect class="%s" x="%.3f%%" y="%d" width="%.3f%%" height="30"/>`,
				x.class, end, y, width)
			end += width
		}
	}
	fmt.Fprintf(&b, `<svg class="bars" height="112" role="img" aria-label="%s in BF16, %s in DF11: `+
		`the exponents take %s instead of %s">`, human.Bytes(r.BF16Bytes), human.Bytes(r.DF11Bytes),
		human.Bytes(to[1].Bytes), human.Bytes(from[1].Bytes))
	bar("BF16 "+human.Bytes(r.BF16Bytes), from, 20)
	bar("DF11 "+human.Bytes(r.DF11Bytes), to, 80)
	b.WriteString(`</svg><ul class="legend">`)
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
	return fmt.Sprintf("%.2f%%", human.Percentage(part, whole))
}
