package inspect

import (
	"bytes"
	"fmt"
	"image/color"
	"image/png"

	"github.com/df11-convert/df11-convert/internal/human"
)

// Colors of the picture: the light ones of the page.
var (
	paper = color.NRGBA{0xfb, 0xfa, 0xf6, 255}
	ink   = color.NRGBA{0x1e, 0x1d, 0x1a, 255}
	muted = color.NRGBA{0x67, 0x64, 0x5c, 255}
	faint = color.NRGBA{0xe2, 0xde, 0xd2, 255}
	white = color.NRGBA{255, 255, 255, 255}
	teal  = color.NRGBA{0x0b, 0x6b, 0x74, 255}
	tones = map[string]color.NRGBA{
		"c-s": {0xd5, 0xcf, 0xbf, 255}, "c-e": teal, "c-o": {0xd0, 0x7f, 0x1d, 255}, "c-u": {0x98, 0xa1, 0xab, 255},
	}
	letterOn = map[string]color.NRGBA{"c-s": {0x39, 0x36, 0x2e, 255}, "c-e": white, "c-o": ink, "c-u": ink}
)

// The picture's size and its margins.
const (
	pictureWidth  = 1200
	pictureHeight = 640
	margin        = 60
	inner         = pictureWidth - 2*margin
)

// PNG draws the main plot: both sizes as bars, and the exponents that make the difference. The same report gives the same
// bytes on every machine. The report must be finished. Without a name in the report, the headline says what the picture
// shows.
func PNG(r *Report) ([]byte, error) {
	c, err := newCanvas(pictureWidth, pictureHeight, paper)
	if err != nil {
		return nil, err
	}
	title, lead := r.words()
	c.text("title", ink, margin, 92, c.cut("title", title, inner))
	c.text("lead", muted, margin, 138, c.cut("lead", lead, inner))
	if r.DF11Bytes > 0 {
		c.anatomy(r)
	}
	if r.Histogram.Total() > 0 {
		c.histogram(r)
	}
	var b bytes.Buffer
	err = png.Encode(&b, c.img)
	return b.Bytes(), err
}

// words are the picture's headline and the line below it.
func (r *Report) words() (title, lead string) {
	before, after := human.Bytes(r.BF16Bytes), human.Bytes(r.DF11Bytes)
	part := share(float64(r.DF11Bytes), float64(r.BF16Bytes))
	switch {
	case r.DF11Bytes == 0:
		return r.Name, before
	case r.Name == "":
		return "The same weights in " + part + " of the space", before + " in BF16 → " + after + " in DF11, bit for bit the same"
	}
	return r.Name, before + " → " + after + ": " + part + " of the size, the same weights bit for bit"
}

// anatomy draws the two bars.
func (c *canvas) anatomy(r *Report) {
	const y, height, gap = 178, 54, 40
	before, after := r.before(), r.after()
	whole := max(r.BF16Bytes, r.DF11Bytes)
	first, second := edges(before, whole), edges(after, whole)
	c.trapezoid(teal, 40, edge{first[1], first[2], y + height}, edge{second[1], second[2], y + height + gap})
	c.bands("BF16", before, first, y, height)
	c.bands("DF11", after, second, y+height+gap, height)
	end := second[len(second)-1]
	if w := c.width("text", r.saved()); r.DF11Bytes < r.BF16Bytes && w+20 < margin+inner-end {
		c.rect(faint, margin+inner-2, y+height+gap, 2, height)
		c.text("text", muted, end+(margin+inner-end-w)/2, y+height+gap+34, r.saved())
	}
}

// edges are the left edges of the bands in pixels, and the right edge of the last one.
func edges(bands []band, whole int64) []int {
	at := []int{margin}
	var sum int64
	for _, b := range bands {
		sum += b.bytes
		at = append(at, margin+int(sum*inner/max(1, whole)))
	}
	return at
}

// bands draws the bands of a bar, with their names where there is room. The bar's own name comes first.
func (c *canvas) bands(name string, bands []band, at []int, y, height int) {
	for i, b := range bands {
		c.rect(tones[b.class], at[i], y, at[i+1]-at[i], height)
		text := fmt.Sprintf("%s %s", b.name, human.Bytes(b.bytes))
		x := at[i] + 14
		if i == 0 {
			x = c.text("strong", letterOn[b.class], x, y+35, name) + 18
		}
		if c.width("text", text) > at[i+1]-x-8 {
			text = b.name
		}
		if c.width("text", text) <= at[i+1]-x-8 {
			c.text("text", letterOn[b.class], x, y+34, text)
		}
	}
}

// histogram draws the share of the weights that each exponent has. All heights are whole numbers of pixels.
func (c *canvas) histogram(r *Report) {
	const top, base = 420, 578
	first, last := r.visible()
	total := r.Histogram.Total()
	var most uint64
	for e := first; e <= last; e++ {
		most = max(most, r.Histogram[e])
	}
	c.text("text", muted, margin, top-34, "share of the weights by exponent")
	n := last - first + 1
	every := (n*46 + inner - 1) / inner
	for i := range n {
		x0, x1 := margin+i*inner/n, margin+(i+1)*inner/n
		pad := max(1, (x1-x0)/9)
		count := r.Histogram[first+i]
		h := int(count * (base - top) / most)
		c.rect(teal, x0+pad, base-h, x1-x0-2*pad, h)
		permille := (count*1000 + total/2) / total
		if label := fmt.Sprintf("%d.%d %%", permille/10, permille%10); permille >= 10 && c.width("small", label) < x1-x0+8 && base-h-6 > top-20 {
			c.text("small", muted, (x0+x1-c.width("small", label))/2, base-h-7, label)
		}
		if (first+i-bias)%every == 0 {
			c.power((x0+x1)/2, base+24, first+i-bias)
		}
	}
	c.rect(muted, margin, base, inner, 1)
	note := fmt.Sprintf("entropy %.2f bits, Huffman code %.2f bits, instead of 8", r.Entropy, r.CodeBits)
	if r.CodeBits > 0 {
		c.text("text", muted, margin+inner-c.width("text", note), top-34, note)
	}
}

// power writes 2 with an exponent, centered.
func (c *canvas) power(x, y, exponent int) {
	e := minus(exponent)
	w := c.width("text", "2") + c.width("small", e)
	end := c.text("text", muted, x-w/2, y, "2")
	c.text("small", muted, end, y-8, e)
}
