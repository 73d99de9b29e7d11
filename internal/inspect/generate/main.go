// Command generate draws the letters of the Go fonts (BSD license, golang.org/x/image/font/gofont) into glyphs.png and
// lists them in glyphs.txt, so that pictures come out the same on every machine. It knows nothing of models.
package main

import (
	"fmt"
	"image"
	"image/draw"
	"image/png"
	"log"
	"os"
	"strings"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
)

// faces are the fonts that pictures use.
var faces = []struct {
	name string
	ttf  []byte
	size float64
}{
	{"title", gobold.TTF, 46}, {"lead", goregular.TTF, 25}, {"strong", gobold.TTF, 22},
	{"text", goregular.TTF, 19}, {"small", goregular.TTF, 14},
}

// letters are those beside ASCII.
const letters = "−–·…→%²"

const atlasWidth = 1024

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	a := &atlas{img: image.NewGray(image.Rect(0, 0, atlasWidth, 2048))}
	for _, f := range faces {
		parsed, err := opentype.Parse(f.ttf)
		if err != nil {
			return err
		}
		face, err := opentype.NewFace(parsed, &opentype.FaceOptions{Size: f.size, DPI: 72, Hinting: font.HintingFull})
		if err != nil {
			return err
		}
		for r := rune(' '); r <= '~'; r++ {
			a.add(f.name, face, r)
		}
		for _, r := range letters {
			if r > '~' {
				a.add(f.name, face, r)
			}
		}
	}
	return a.write()
}

// atlas is a picture that fills up row by row.
type atlas struct {
	img          *image.Gray
	x, y, height int
	list         strings.Builder
}

func (a *atlas) add(name string, face font.Face, r rune) {
	box, mask, at, advance, ok := face.Glyph(fixed.Point26_6{}, r)
	if !ok {
		log.Fatalf("no glyph for %q", r)
	}
	w, h := box.Dx(), box.Dy()
	if a.x+w > atlasWidth {
		a.x, a.y, a.height = 0, a.y+a.height+1, 0
	}
	draw.DrawMask(a.img, image.Rect(a.x, a.y, a.x+w, a.y+h), image.White, image.Point{}, mask, at, draw.Over)
	fmt.Fprintf(&a.list, "%s %d %d %d %d %d %d %d %d\n", name, r, a.x, a.y, w, h, box.Min.X, box.Min.Y, advance.Round())
	a.x, a.height = a.x+w+1, max(a.height, h)
}

func (a *atlas) write() error {
	if err := os.WriteFile("glyphs.txt", []byte(a.list.String()), 0o666); err != nil {
		return err
	}
	f, err := os.Create("glyphs.png")
	if err != nil {
		return err
	}
	used := a.img.SubImage(image.Rect(0, 0, atlasWidth, a.y+a.height))
	enc := png.Encoder{CompressionLevel: png.BestCompression}
	if err := enc.Encode(f, used); err != nil {
		return err
	}
	return f.Close()
}
