package charts

import (
	"bytes"
	"fmt"
	"image/color"
	"image/png"
	"slices"
	"strconv"

	"github.com/df11-convert/df11-convert/internal/describe"
	"github.com/df11-convert/df11-convert/internal/human"
)

// Colors of the picture. It has no background, so all have middle lightness to suit light and dark
// pages.
var (
	gray   = color.NRGBA{0x6e, 0x77, 0x81, 255}
	silver = color.NRGBA{0x84, 0x90, 0x9c, 255}
	teal   = color.NRGBA{0x16, 0x84, 0x8f, 255}
	orange = color.NRGBA{0xc9, 0x76, 0x1a, 255}
	violet = color.NRGBA{0x8a, 0x75, 0xc0, 255}
)

// The picture's size and its margins. A card shows it at 60% of its width, and a phone at 30%, so
// its letters are large.
const (
	pictureWidth  = 1200
	pictureHeight = 800
	margin        = 60
	inner         = pictureWidth - 2*margin
)

// PNG draws a model card's picture: both sizes as bars, and the exponents that make the difference.
// It shows sizes and claims no equality, because only a comparison can. It names no model, so the
// same weights have the same picture everywhere. Call Finish of the report first. It isn't an SVG,
// because the Hub serves one as an image or as text, by what the browser says that it's for, and a
// cache may keep the text: then the card shows nothing.
func PNG(r *describe.Report) ([]byte, error) {
	c, err := newCanvas(pictureWidth, pictureHeight)
	if err != nil {
		return nil, err
	}
	c.write(c.title, margin, 92, 0, fmt.Sprintf("%.1f%% of the size",
		human.Percentage(r.DF11Bytes, r.BF16Bytes)))
	c.bar("BF16 "+human.Bytes(r.BF16Bytes), before(r), r, 168)
	c.bar("DF11 "+human.Bytes(r.DF11Bytes), after(r), r, 272)
	c.legend(after(r), 376)
	if r.Histogram.Total() > 0 {
		c.histogram(r)
	}
	var b bytes.Buffer
	// BestSpeed takes less than half of the time for 10% more bytes, and a conversion waits for it
	e := png.Encoder{CompressionLevel: png.BestSpeed}
	err = e.Encode(&b, c.img)
	return b.Bytes(), err
}

// bar draws a model's bytes below their name. The larger model is as long as the picture is wide.
func (c *canvas) bar(name string, bands []band, r *describe.Report, y int) {
	c.write(c.text, margin, y-14, 0, name)
	end, whole := int64(0), max(1, r.BF16Bytes, r.DF11Bytes)
	for _, b := range bands {
		from := end * inner / whole
		end += b.Bytes
		c.rect(b.color, margin+int(from), y, int(end*inner/whole-from), 44)
	}
}

// legend names all bands that aren't empty, with their sizes, two in a line.
func (c *canvas) legend(bands []band, y int) {
	n := 0
	for _, b := range bands {
		if b.Bytes > 0 {
			x, line := margin+n%2*inner/2, y+n/2*46
			c.rect(b.color, x, line-21, 22, 22)
			c.write(c.text, x+34, line, 0, b.Name+" "+human.Bytes(b.Bytes))
			n++
		}
	}
}

// histogram draws each exponent's share of the weights. All heights are whole pixels.
func (c *canvas) histogram(r *describe.Report) {
	const top, base = 590, 738
	first, last := usual(&r.Histogram)
	n, most := last-first+1, max(1, slices.Max(r.Histogram[first:last+1]))
	c.write(c.text, margin, top-90, 0, "share of the weights by exponent of 2")
	c.write(c.text, margin, top-46, 0, fmt.Sprintf(
		"Huffman code %.2f bits instead of 8, entropy %.2f bits", r.CodeBits, r.Entropy))
	for i := range n {
		x, width := margin+i*inner/n, inner/n
		h := int(r.Histogram[first+i] * (base - top) / most)
		c.rect(teal, x+width/9, base-h, width-2*(width/9), h)
		if power := first + i - bias; power%(1+n*64/inner) == 0 {
			c.write(c.text, x+width/2, base+38, -0.5, strconv.Itoa(power))
		}
	}
	c.rect(gray, margin, base, inner, 1)
}
