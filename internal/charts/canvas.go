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
	img         *image.NRGBA
	title, text font.Face
}

func newCanvas(w, h int) (*canvas, error) {
	title, err := newFace(gobold.TTF, 64)
	if err != nil {
		return nil, err
	}
	text, err := newFace(goregular.TTF, 30)
	return &canvas{image.NewNRGBA(image.Rect(0, 0, w, h)), title, text}, err
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
	d := font.Drawer{Dst: c.img, Src: image.NewUniform(gray), Face: face, Dot: fixed.P(x, y)}
	d.DrawString(line)
	return d.Dot.X.Round()
}
