package inspect

import (
	"fmt"
	"html/template"
	"slices"

	"github.com/df11-convert/df11-convert/internal/human"
)

// band is one colored stretch of a bar.
type band struct {
	class, name string
	bytes       int64
}

// before are the bands of the model in BF16. The bytes that are the same before and after come first, so that the eye sees
// only the exponents shrink.
func (r *Report) before() []band {
	var coded int64
	for _, u := range r.Units {
		if u.Reason == "" {
			coded += u.Weights
		}
	}
	return []band{
		{"c-s", "sign and mantissa", coded}, {"c-e", "exponents", coded},
		{"c-u", "unchanged", max(0, r.BF16Bytes-2*coded)},
	}
}

// after are the bands of the model in DF11.
func (r *Report) after() []band {
	part := map[string]int64{}
	for _, p := range r.Parts {
		part[p.Name] = p.Bytes
	}
	return []band{
		{"c-s", "sign and mantissa", part[PartSignMantissa]}, {"c-e", "coded exponents", part[PartExponents]},
		{"c-o", "for the decoder", part[PartPlaces] + part[PartTables] + part[PartHeaders]}, {"c-u", "unchanged", part[PartPlain]},
	}
}

// saved says how much smaller the model gets.
func (r *Report) saved() string {
	return share(float64(r.BF16Bytes-r.DF11Bytes), float64(r.BF16Bytes)) + " saved"
}

// anatomy draws both sizes as bars to one scale, made of their bands.
func (r *Report) anatomy() template.HTML {
	const top, height, gap = 34, 54, 58
	before, after := r.before(), r.after()
	scale := float64(chartWidth) / float64(max(r.BF16Bytes, r.DF11Bytes, 1))
	size := share(float64(r.DF11Bytes), float64(r.BF16Bytes))
	s := newSVG("anatomy", top+2*height+gap+30, "Size before and after", fmt.Sprintf(
		"BF16 takes %s, DF11 %s, which is %s. Sign and mantissa take %s in both; the exponents shrink from %s to %s.",
		human.Bytes(r.BF16Bytes), human.Bytes(r.DF11Bytes), size,
		human.Bytes(after[0].bytes), human.Bytes(before[1].bytes), human.Bytes(after[1].bytes)))
	second := float64(top + height + gap)
	x0 := float64(before[0].bytes) * scale
	s.line("fade", x0, top+height, x0+float64(before[1].bytes)*scale, top+height,
		float64(after[0].bytes+after[1].bytes)*scale, second, float64(after[0].bytes)*scale, second)
	s.text("s strong", 0, top-12, "BF16")
	s.text("e strong", chartWidth, top-12, human.Bytes(r.BF16Bytes))
	bar(s, before, top, height, scale)
	bar(s, after, second, height, scale)
	end := float64(r.DF11Bytes) * scale
	if end < chartWidth {
		s.rect("saved", end, second, chartWidth-end, height, "")
	}
	if chartWidth-end > 110 {
		s.text("m muted", (end+chartWidth)/2, second+height/2+5, r.saved())
	}
	s.text("s strong", 0, second+height+22, "DF11 · "+human.Bytes(r.DF11Bytes)+" · "+size)
	legend(s, after, second+height+22, scale)
	return s.done()
}

// legend names, at the right, the bands that are too narrow for their names.
func legend(s *svg, bands []band, y, scale float64) {
	x := float64(chartWidth)
	for _, b := range slices.Backward(bands) {
		if b.bytes == 0 || fits(b, scale) {
			continue
		}
		text := b.name + " " + human.Bytes(b.bytes)
		x -= textWidth(text)
		s.text("s small muted", x, y, text)
		x -= 16
		s.rect(b.class, x, y-10, 11, 11, "")
		x -= 16
	}
}

// fits reports whether a band has room for its name.
func fits(b band, scale float64) bool { return textWidth(b.name)*1.15 < float64(b.bytes)*scale-16 }

// bar draws the bands side by side, with their names where there is room.
func bar(s *svg, bands []band, y, height, scale float64) {
	x := 0.0
	for _, b := range bands {
		w := float64(b.bytes) * scale
		if w <= 0 {
			continue
		}
		s.rect(b.class, x, y, w, height, b.name+": "+human.Bytes(b.bytes))
		if fits(b, scale) {
			s.text("s on "+b.class, x+10, y+height/2-2, b.name)
			s.text("s on small "+b.class, x+10, y+height/2+15, human.Bytes(b.bytes))
		}
		x += w
	}
}
