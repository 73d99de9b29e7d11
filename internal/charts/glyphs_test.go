package charts_test

import (
	"bytes"
	"fmt"
	"image"
	"image/draw"
	"image/png"
	"os"
	"strings"
	"testing"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
)

// faces are the fonts in pictures: the Go fonts (BSD license, golang.org/x/image/font/gofont).
var faces = []struct {
	name string
	ttf  []byte
	size float64
}{
	{"title", gobold.TTF, 46}, {"text", goregular.TTF, 19}, {"small", goregular.TTF, 14},
}

const atlasWidth = 1024

// atlas is a picture that letters fill row by row, with a list of where each letter is.
type atlas struct {
	img          *image.Gray
	x, y, height int
	list         strings.Builder
}

func (a *atlas) add(t *testing.T, name string, face font.Face, r rune) {
	t.Helper()
	box, mask, at, advance, ok := face.Glyph(fixed.Point26_6{}, r)
	if !ok {
		t.Fatalf("no glyph for %q", r)
	}
	w, h := box.Dx(), box.Dy()
	if a.x+w > atlasWidth {
		a.x, a.y, a.height = 0, a.y+a.height+1, 0
	}
	draw.DrawMask(a.img, image.Rect(a.x, a.y, a.x+w, a.y+h), image.White, image.Point{}, mask, at, draw.Over)
	fmt.Fprintf(&a.list, "%s %d %d %d %d %d %d %d %d\n", name, r, a.x, a.y, w, h, box.Min.X, box.Min.Y, advance.Round())
	a.x, a.height = a.x+w+1, max(a.height, h)
}

// drawAtlas draws all letters of all faces.
func drawAtlas(t *testing.T) (img *image.Gray, list string) {
	t.Helper()
	a := &atlas{img: image.NewGray(image.Rect(0, 0, atlasWidth, 2048))}
	for _, f := range faces {
		parsed, err := opentype.Parse(f.ttf)
		must(t, err)
		face, err := opentype.NewFace(parsed, &opentype.FaceOptions{Size: f.size, DPI: 72, Hinting: font.HintingFull})
		must(t, err)
		a.add(t, f.name, face, '−') // of negative exponents
		for r := ' '; r <= '~'; r++ {
			a.add(t, f.name, face, r)
		}
	}
	return a.img.SubImage(image.Rect(0, 0, atlasWidth, a.y+a.height)).(*image.Gray), a.list.String()
}

// TestGlyphs compares the embedded atlas with the fonts; -update draws it again.
func TestGlyphs(t *testing.T) {
	img, list := drawAtlas(t)
	if *update {
		var b bytes.Buffer
		must(t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, img))
		must(t, os.WriteFile("glyphs.png", b.Bytes(), 0o666))
		must(t, os.WriteFile("glyphs.txt", []byte(list), 0o666))
	}
	stored, err := os.ReadFile("glyphs.txt")
	must(t, err)
	if list != string(stored) {
		t.Error("glyphs.txt is not the list of the letters drawn; run the test with -update")
	}
	f, err := os.Open("glyphs.png")
	must(t, err)
	defer f.Close()
	decoded, err := png.Decode(f)
	must(t, err)
	if gray, ok := decoded.(*image.Gray); !ok || gray.Rect != img.Rect || !bytes.Equal(gray.Pix, img.Pix[:len(gray.Pix)]) {
		t.Error("glyphs.png is not what the fonts give; run the test with -update")
	}
}
