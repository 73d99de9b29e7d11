package charts

import (
	"bytes"
	_ "embed"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"strings"
)

// The letters of the Go fonts are embedded as a picture and a list, so pictures look the same on
// every machine. TestGlyphs compares both with the fonts; with -update it draws them again.
//
//go:embed glyphs.png
var glyphImage []byte

//go:embed glyphs.txt
var glyphList string

// letter is a rune in one of the atlas's fonts.
type letter struct {
	face string
	r    rune
}

// glyph is where a letter is in the atlas, where its box is relative to the pen, and how far the
// pen moves.
type glyph struct {
	from    image.Rectangle
	at      image.Point
	advance int
}

// atlas is the embedded picture with its list.
type atlas struct {
	mask   *image.Gray
	glyphs map[letter]glyph
}

// loadAtlas reads the embedded atlas.
func loadAtlas() (*atlas, error) {
	img, err := png.Decode(bytes.NewReader(glyphImage))
	if err != nil {
		return nil, fmt.Errorf("read glyphs: %w", err)
	}
	mask, ok := img.(*image.Gray)
	if !ok {
		return nil, fmt.Errorf("read glyphs: the picture is a %T", img)
	}
	a := &atlas{mask, map[letter]glyph{}}
	for line := range strings.Lines(glyphList) {
		var l letter
		var g glyph
		var x, y, w, h int
		if _, err := fmt.Sscan(line, &l.face, &l.r, &x, &y, &w, &h, &g.at.X, &g.at.Y,
			&g.advance); err != nil {
			return nil, fmt.Errorf("read glyphs: %w", err)
		}
		g.from = image.Rect(x, y, x+w, y+h)
		a.glyphs[l] = g
	}
	return a, nil
}

// canvas draws using only integers, so every machine makes the same picture.
type canvas struct {
	img *image.NRGBA
	*atlas
}

// newCanvas returns a canvas without a background.
func newCanvas(w, h int) (*canvas, error) {
	a, err := loadAtlas()
	if err != nil {
		return nil, err
	}
	return &canvas{image.NewNRGBA(image.Rect(0, 0, w, h)), a}, nil
}

// blend lays a color over a pixel; alpha goes from 0 to 255.
func (c *canvas) blend(x, y int, col color.NRGBA, alpha int) {
	if alpha == 0 || !(image.Point{x, y}).In(c.img.Rect) {
		return
	}
	i := c.img.PixOffset(x, y)
	p := c.img.Pix[i : i+4 : i+4]
	below := int(p[3]) * (255 - alpha) // remaining alpha of the pixel itself, times 255
	whole := 255*alpha + below
	mix := func(old, new uint8) uint8 {
		return uint8((int(new)*255*alpha + int(old)*below + whole/2) / whole)
	}
	p[0], p[1], p[2], p[3] = mix(p[0], col.R), mix(p[1], col.G), mix(p[2],
		col.B), uint8((whole+127)/255)
}

func (c *canvas) rect(col color.NRGBA, x, y, w, h int) {
	draw.Draw(c.img, image.Rect(x, y, x+w, y+h), image.NewUniform(col), image.Point{}, draw.Src)
}

// edge is a horizontal line.
type edge struct{ left, right, y int }

// trapezoid fills the area between two edges. It smooths the slanting sides to a sixteenth of a
// pixel.
func (c *canvas) trapezoid(col color.NRGBA, alpha int, top, bottom edge) {
	const sub = 16
	h, y := bottom.y-top.y, top.y
	for j := range h {
		left := (top.left*(2*h-2*j-1) + bottom.left*(2*j+1)) * sub / (2 * h)
		right := (top.right*(2*h-2*j-1) + bottom.right*(2*j+1)) * sub / (2 * h)
		for i := left / sub; i <= right/sub; i++ {
			covered := min(right, (i+1)*sub) - max(left, i*sub)
			c.blend(i, y+j, col, alpha*max(0, covered)/sub)
		}
	}
}

// glyph returns a letter. For a letter that the atlas lacks, it returns a question mark.
func (c *canvas) glyph(face string, r rune) glyph {
	if g, ok := c.glyphs[letter{face, r}]; ok {
		return g
	}
	return c.glyphs[letter{face, '?'}]
}

func (c *canvas) width(face, text string) int {
	w := 0
	for _, r := range text {
		w += c.glyph(face, r).advance
	}
	return w
}

// text writes a line with its baseline at y and returns where the line ends.
func (c *canvas) text(face string, col color.NRGBA, x, y int, text string) int {
	for _, r := range text {
		g := c.glyph(face, r)
		for j := range g.from.Dy() {
			for i := range g.from.Dx() {
				alpha := c.mask.GrayAt(g.from.Min.X+i, g.from.Min.Y+j).Y
				c.blend(x+g.at.X+i, y+g.at.Y+j, col, int(alpha))
			}
		}
		x += g.advance
	}
	return x
}
