package charts

import (
	"image"
	"image/color"
	"image/draw"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
)

// canvas is a picture without a background. Rectangles have whole pixels, and fonts are drawn with
// fixed-point numbers, so every machine makes the same picture.
type canvas struct {
	img         *image.Paletted
	title, text font.Face
}

func newCanvas(w, h int) (*canvas, error) {
	title, err := newFace(gobold.TTF, 64)
	if err != nil {
		return nil, err
	}
	text, err := newFace(goregular.TTF, 30)
	return &canvas{image.NewPaletted(image.Rect(0, 0, w, h), palette()), title, text}, err
}

// shades is how many shades of gray letters have, from transparent to opaque.
const shades = 64

// palette returns the shades, in order, and then the colors of the bars. Without a palette, the
// file would be twice as large, and take four times as long.
func palette() color.Palette {
	p := make(color.Palette, shades)
	for i := range p {
		p[i] = color.NRGBA{gray.R, gray.G, gray.B, uint8(i * 255 / (shades - 1))}
	}
	return append(p, silver, teal, orange, violet)
}

// letters takes the pixels of gray letters.
type letters struct{ *image.Paletted }

// SetRGBA64 finds the shade by its opacity: a search in the palette would take longer than all
// else.
func (l letters) SetRGBA64(x, y int, c color.RGBA64) {
	l.SetColorIndex(x, y, uint8((uint32(c.A)*(shades-1)+0x7fff)/0xffff))
}

// newFace opens a font in a size in pixels.
func newFace(ttf []byte, size float64) (font.Face, error) {
	parsed, err := opentype.Parse(ttf)
	if err != nil {
		return nil, err
	}
	return opentype.NewFace(parsed,
		&opentype.FaceOptions{Size: size, DPI: 72, Hinting: font.HintingFull})
}

func (c *canvas) rect(col color.NRGBA, x, y, w, h int) {
	draw.Draw(c.img, image.Rect(x, y, x+w, y+h), image.NewUniform(col), image.Point{}, draw.Src)
}

// write writes a gray line with its baseline at y, and returns where the line ends. It begins at x
// plus the line's width times shift: 0, or less to center it or to end it at x.
func (c *canvas) write(face font.Face, x, y int, shift float64, line string) int {
	x += int(shift * float64(font.MeasureString(face, line).Round()))
	d := font.Drawer{Dst: letters{c.img}, Src: image.NewUniform(gray), Face: face, Dot: fixed.P(x, y)}
	d.DrawString(line)
	return d.Dot.X.Round()
}
