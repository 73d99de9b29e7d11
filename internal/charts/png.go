package charts

import (
	"bytes"
	"fmt"
	"image/color"
	"image/png"
	"slices"
	"strconv"
	"strings"

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

// The picture's size and its margins.
const (
	pictureWidth  = 1200
	pictureHeight = 640
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
	c.text("title", gray, margin, 80, share(r.DF11Bytes, r.BF16Bytes)+" of the size")
	c.anatomy(r)
	if r.Histogram.Total() > 0 {
		c.histogram(r)
	}
	var b bytes.Buffer
	// BestSpeed takes two thirds of the time for 5% more bytes, and a conversion waits for it
	e := png.Encoder{CompressionLevel: png.BestSpeed}
	err = e.Encode(&b, c.img)
	return b.Bytes(), err
}

// anatomy draws the two bars as Drawing does, and explains their colors.
func (c *canvas) anatomy(r *describe.Report) {
	const y, height, gap = 142, 52, 34
	before, after := before(r), after(r)
	whole := max(r.BF16Bytes, r.DF11Bytes)
	first, second := edges(before, whole), edges(after, whole)
	c.text("text", gray, margin, y-12, "BF16 "+human.Bytes(r.BF16Bytes))
	c.bar(before, first, y, height)
	c.trapezoid(teal, 60, edge{first[1], first[2], y + height},
		edge{second[1], second[2], y + height + gap})
	c.bar(after, second, y+height+gap, height)
	c.text("text", gray, margin, y+2*height+gap+26, "DF11 "+human.Bytes(r.DF11Bytes))
	c.legend(after, y+2*height+gap+66)
}

// legend names all bands that aren't empty, with their sizes.
func (c *canvas) legend(bands []band, y int) {
	x := margin
	for _, b := range bands {
		if b.Bytes == 0 {
			continue
		}
		c.rect(b.color, x, y-13, 14, 14)
		x = c.text("text", gray, x+22, y, b.Name+" "+human.Bytes(b.Bytes)) + 30
	}
}

// edges returns the left edges of the bands in pixels, and the right edge of the last one.
func edges(bands []band, whole int64) []int {
	at := []int{margin}
	var sum int64
	for _, b := range bands {
		sum += b.Bytes
		at = append(at, margin+int(sum*inner/max(1, whole)))
	}
	return at
}

func (c *canvas) bar(bands []band, at []int, y, height int) {
	for i, b := range bands {
		c.rect(b.color, at[i], y, at[i+1]-at[i], height)
	}
}

// histogram draws each exponent's share of the weights. All heights are whole pixels.
func (c *canvas) histogram(r *describe.Report) {
	const top, base = 438, 586
	columns := axis(&r.Histogram)
	n := len(columns)
	total := r.Histogram.Total()
	most := uint64(1)
	for _, x := range columns {
		most = max(most, x.count(&r.Histogram))
	}
	c.text("text", gray, margin, top-34, "share of the weights by exponent")
	for i, x := range columns {
		x0, x1 := margin+i*inner/n, margin+(i+1)*inner/n
		pad := max(1, (x1-x0)/9)
		count := x.count(&r.Histogram)
		h := int(count * (base - top) / most)
		if count > 0 {
			h = max(h, 2) // even the rarest stays visible
		}
		c.rect(teal, x0+pad, base-h, x1-x0-2*pad, h)
		if label := share(int64(count), int64(total)); count*100 >= total &&
			c.width("small", label) < x1-x0+8 {
			c.text("small", gray, (x0+x1-c.width("small", label))/2, base-h-7, label)
		}
		switch {
		case x.label != "":
			c.text("text", gray, (x0+x1-c.width("text", x.label))/2, base+24, x.label)
		case labeled(columns, i, (n*46+inner-1)/inner):
			c.power((x0+x1)/2, base+24, x.first-bias)
		}
		c.rect(gray, x0, base, x1-x0, 1)
	}
	if slices.ContainsFunc(columns, func(x column) bool { return x.label != "" }) {
		c.text("small", gray, margin, base+46, "< and >: all exponents below and above")
	}
	note := fmt.Sprintf("entropy %.2f bits, Huffman code %.2f bits, instead of 8", r.Entropy,
		r.CodeBits)
	if r.CodeBits > 0 {
		c.text("text", gray, margin+inner-c.width("text", note), top-34, note)
	}
}

// power writes 2 with an exponent, centered.
func (c *canvas) power(x, y, exponent int) {
	e := strings.Replace(strconv.Itoa(exponent), "-", "−", 1)
	w := c.width("text", "2") + c.width("small", e)
	end := c.text("text", gray, x-w/2, y, "2")
	c.text("small", gray, end, y-8, e)
}
