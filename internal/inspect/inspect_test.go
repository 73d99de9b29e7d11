package inspect_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/inspect"
)

var update = flag.Bool("update", false, "write the letters and testdata/plot.sha256 anew")

// report is a model of two single units and a stack, with round figures.
func report(name string) *inspect.Report {
	r := &inspect.Report{
		Model: inspect.Model{Name: name, Kind: inspect.DF11}, Files: 8, Bytes: 7_000_000, BF16Bytes: 10_000_000, DF11Bytes: 6_900_000, Exact: true,
		DTypes: []inspect.DType{{Name: "U8", Tensors: 40, Elems: 6_890_000, Bytes: 6_890_000}},
		Parts:  []inspect.Part{{inspect.PartSignMantissa, 4_900_000}, {inspect.PartExponents, 1_700_000}, {inspect.PartPlaces, 100_000}, {inspect.PartPlain, 200_000}},
	}
	for _, path := range []string{"model.layers.10", "lm_head", "model.layers.2", "model.layers.1"} {
		u := inspect.Unit{Path: path, Tensors: 7, Weights: 1000, Bytes: 1400, NBits: 2700, LUTs: 3, Extremes: inspect.Extremes{LargestChunk: 1000}}
		for i, n := range []uint64{1, 9, 90, 300, 400, 190, 9, 1} {
			u.Histogram[115+i], u.Lengths[115+i] = n, []uint8{7, 5, 4, 2, 1, 3, 6, 7}[i]
		}
		u.Finish()
		r.Units = append(r.Units, u)
	}
	r.Units = append(r.Units, inspect.Unit{Path: "model.layers.3", Weights: 1000, Reason: "exponent_range", Why: "has too large weights"})
	r.Finish()
	return r
}

// TestFigures: entropy, bound and headroom of a known histogram; units in natural order.
func TestFigures(t *testing.T) {
	r := report("m")
	u := r.Units[1]
	if u.Path != "model.layers.1" || r.Units[4].Path != "model.layers.10" {
		t.Errorf("order: %v", r.Units)
	}
	want := 0.0
	for _, p := range []float64{.001, .009, .09, .3, .4, .19, .009, .001} {
		want -= p * math.Log2(p)
	}
	if math.Abs(u.Entropy-want) > 1e-12 || math.Abs(u.Bound-8-want) > 1e-12 || u.Bits != 11.2 || u.CodeBits != 2.7 || math.Abs(r.Entropy-want) > 1e-12 {
		t.Errorf("entropy %v want %v, bound %v, bits %v, code %v", u.Entropy, want, u.Bound, u.Bits, u.CodeBits)
	}
	if u.Headroom != (inspect.Headroom{Exponents: 239 - 122, LUTs: 15, Chunk: 22550, Weights: 1<<31 - 1 - 1000}) || u.Longest != 7 {
		t.Errorf("headroom %+v, longest %d", u.Headroom, u.Longest)
	}
	if r.Weights != 5000 || r.Read != 4000 || r.Histogram.Total() != 4000 {
		t.Errorf("%d weights, %d read, %d counted", r.Weights, r.Read, r.Histogram.Total())
	}
}

// TestHistogramJSON: a histogram is written from its first exponent to its last.
func TestHistogramJSON(t *testing.T) {
	for want, h := range map[string]inspect.Histogram{
		`{"first":0,"counts":[]}`: {}, `{"first":0,"counts":[1]}`: {0: 1}, `{"first":255,"counts":[7]}`: {255: 7},
		`{"first":100,"counts":[1,0,9]}`: {100: 1, 102: 9},
	} {
		if got, err := json.Marshal(h); err != nil || string(got) != want {
			t.Errorf("%s %v, want %s", got, err, want)
		}
	}
}

// TestAdd: exponents are found in both bytes, and the sign does not matter.
func TestAdd(t *testing.T) {
	var h inspect.Histogram
	h.Add([]byte{0x80, 0x3f, 0x00, 0x40, 0x80, 0xbf, 0x00, 0x00})
	if h[127] != 2 || h[128] != 1 || h[0] != 1 || h.Total() != 4 {
		t.Errorf("%v", h)
	}
}

// TestHTML: the page is well formed, refers to nothing outside, and escapes names that want to be markup.
func TestHTML(t *testing.T) {
	evil := `<script>alert("x")</script>&`
	r := report(evil)
	r.Units[0].Path = evil
	for name, r := range map[string]*inspect.Report{"full": r, "refused": {Model: inspect.Model{Name: evil, Kind: inspect.Source, Refused: evil}}, "unread": unread(), "empty": {}} {
		b := inspect.HTML(r)
		if bytes.Contains(b, []byte("<script")) || bytes.Contains(b, []byte("http")) || bytes.Contains(b, []byte("NaN")) || bytes.Contains(b, []byte("Inf")) {
			t.Errorf("%s: the page holds a script, an address or a number that is none", name)
		}
		checkMarkup(t, name, b)
	}
}

// unread is a report without any weights read.
func unread() *inspect.Report {
	r := report("m")
	r.Histogram = inspect.Histogram{}
	for i := range r.Units {
		r.Units[i].Histogram = inspect.Histogram{}
	}
	return r
}

// checkMarkup wants every SVG to be well-formed XML with a title.
func checkMarkup(t *testing.T, name string, page []byte) {
	t.Helper()
	for rest := string(page); ; {
		_, after, ok := strings.Cut(rest, "<svg")
		if !ok {
			return
		}
		chart, tail, ok := strings.Cut(after, "</svg>")
		if !ok || !strings.Contains(chart, "<title") || !strings.Contains(chart, `role="img"`) {
			t.Errorf("%s: a chart has no end, title or role", name)
			return
		}
		rest = tail
		d := xml.NewDecoder(strings.NewReader("<svg" + chart + "</svg>"))
		for {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Errorf("%s: %v", name, err)
				break
			}
		}
	}
}

// TestPNG: the picture's pixels are the same on every machine.
func TestPNG(t *testing.T) {
	sum := sha256.New()
	for _, name := range []string{"", "A model with a name that is too long for its picture and needs to be cut somewhere"} {
		b, err := inspect.PNG(report(name))
		if err != nil {
			t.Fatal(err)
		}
		img, err := png.Decode(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		for y := range img.Bounds().Dy() {
			for x := range img.Bounds().Dx() {
				r, g, b, a := img.At(x, y).RGBA()
				sum.Write([]byte{byte(r >> 8), byte(g >> 8), byte(b >> 8), byte(a >> 8)})
			}
		}
	}
	got, file := hex.EncodeToString(sum.Sum(nil))+"\n", filepath.Join("testdata", "plot.sha256")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the pixels changed; look at the picture, then run the test with -update")
	}
	for _, r := range []*inspect.Report{{}, unread(), {Model: inspect.Model{Name: "x", Refused: "y"}, BF16Bytes: 5}} {
		if _, err := inspect.PNG(r); err != nil {
			t.Error(err)
		}
	}
}

// BenchmarkPNG draws the picture of a model card.
func BenchmarkPNG(b *testing.B) {
	r := report("")
	for b.Loop() {
		if _, err := inspect.PNG(r); err != nil {
			b.Fatal(err)
		}
	}
}
