package charts_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"html"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/alloc"
	"github.com/df11-convert/df11-convert/internal/charts"
	"github.com/df11-convert/df11-convert/internal/describe"
)

var update = flag.Bool("update", false, "write the letters and testdata/plot.sha256 anew")

// report is a model of two single units and a stack, with round figures.
func report(name string) *describe.Report {
	r := &describe.Report{
		Name: name, Kind: describe.KindDF11, Files: 8, Bytes: 7_000_000, BF16Bytes: 10_000_000, DF11Bytes: 6_900_000, Exact: true,
		DTypes: []describe.DType{{Name: "U8", Tensors: 40, Elems: 6_890_000, Bytes: 6_890_000}},
		Parts:  []describe.Part{{Name: describe.PartSignMantissa, Bytes: 4_900_000}, {Name: describe.PartExponents, Bytes: 1_700_000}, {Name: describe.PartPlaces, Bytes: 100_000}, {Name: describe.PartPlain, Bytes: 200_000}},
	}
	for _, path := range []string{"model.layers.10", "lm_head", "model.layers.2", "model.layers.1"} {
		u := describe.Unit{Path: path, Tensors: 7, Weights: 1000, Bytes: 1400, NBits: 2700, LUTs: 3, Longest: 7}
		for i, n := range []uint64{1, 9, 90, 300, 400, 190, 9, 1} {
			u.Histogram[115+i] = n
			u.Codes = append(u.Codes, describe.Code{Exponent: 115 + i, Bits: []int{7, 5, 4, 2, 1, 3, 6, 7}[i]})
		}
		u.Finish()
		r.Units = append(r.Units, u)
	}
	r.Units = append(r.Units, describe.Unit{Path: "model.layers.3", Weights: 1000, Reason: "too_many_luts"})
	r.Finish()
	return r
}

// TestHTML: the page is well formed, refers to nothing outside, and no name becomes markup or script.
func TestHTML(t *testing.T) {
	evil := `</script><script>alert("x")</script>&`
	r := report(evil)
	r.Units[0].Path = evil
	empty := &describe.Report{}
	for name, r := range map[string]*describe.Report{"full": r, "refused": {Name: evil, Kind: describe.KindSource, Refused: evil}, "unread": unread(), "empty": empty} {
		b := charts.HTML(r)
		for range 5 {
			if !bytes.Equal(b, charts.HTML(r)) {
				t.Errorf("%s: the same report gives another page", name)
			}
		}
		if n := bytes.Count(b, []byte("<script")); n != 2 || bytes.Count(b, []byte("</script")) != 2 {
			t.Errorf("%s: %d scripts, want the read-outs and the page's own", name, n)
		}
		shown, _, _ := bytes.Cut(b, []byte("<script>"))
		if bytes.Contains(b, []byte("http:")) || bytes.Contains(b, []byte("https:")) || bytes.Contains(shown, []byte("NaN")) || bytes.Contains(shown, []byte("Inf")) || bytes.Contains(shown, []byte(">-0")) {
			t.Errorf("%s: the page holds an address or a number that is none", name)
		}
		checkMarkup(t, name, b)
		checkPolicy(t, name, b)
	}
}

// checkPolicy wants the policy to allow the page's script and no other.
func checkPolicy(t *testing.T, name string, page []byte) {
	t.Helper()
	_, rest, _ := strings.Cut(string(page), "<script>")
	script, _, _ := strings.Cut(rest, "</script>")
	sum := sha256.Sum256([]byte(script))
	if policy := "script-src &#39;sha256-" + html.EscapeString(base64.StdEncoding.EncodeToString(sum[:])); !strings.Contains(string(page), strings.ReplaceAll(policy, "+", "&#43;")) {
		t.Errorf("%s: the policy does not allow the page's script", name)
	}
}

// TestFewZerosKeepTheAxis: zeros, subnormals and lone exponents far away take a column each, not the axis up to them.
func TestFewZerosKeepTheAxis(t *testing.T) {
	columns := func(r *describe.Report) int {
		_, rest, _ := strings.Cut(string(charts.HTML(r)), `data-x="e" data-slots="`)
		n := 0
		fmt.Sscan(rest[:strings.IndexByte(rest, '"')], &n)
		return n
	}
	whole := columns(report("m"))
	for name, odd := range map[string]map[int]uint64{"zeros": {0: 3}, "many zeros": {0: 1000}, "tiny": {5: 1}, "large": {230: 1}, "all": {0: 9, 7: 1, 60: 1, 239: 1}} {
		r := report("m")
		for e, n := range odd {
			r.Histogram[e] += n
		}
		if n := columns(r); n < whole || n > whole+2*len(odd) {
			t.Errorf("%s: %d columns, without them %d", name, n, whole)
		}
	}
}

// TestManyKindsOfUnits: the names below a plot stay few, however many kinds of units there are, and every unit has a place.
func TestManyKindsOfUnits(t *testing.T) {
	r := report("m")
	for i := range 40 {
		u := r.Units[0]
		u.Path = fmt.Sprintf("%c.blocks.%d", 'A'+i%26, i)
		r.Units = append(r.Units, u)
	}
	page := string(charts.HTML(r))
	_, rest, _ := strings.Cut(page, `<div class="runs">`)
	labels, _, _ := strings.Cut(rest, "</div>")
	if n := strings.Count(labels, "<span"); n == 0 || n > 6 {
		t.Errorf("%d names", n)
	}
	if n := strings.Count(page, `<tr data-u="`); n != 44 {
		t.Errorf("%d units have a place", n)
	}
}

// TestGPUs: the largest module that is decoded needs room beside the stored bytes, one that stays in BF16 does not.
func TestGPUs(t *testing.T) {
	r := &describe.Report{BF16Bytes: 16e9, DF11Bytes: 11e9, Units: []describe.Unit{{Path: "a", Weights: 7e9, Bytes: 10e9}, {Path: "b", Weights: 8e9, Reason: "empty"}}}
	r.Finish()
	page := string(charts.HTML(r))
	for _, row := range []string{`16 GB</td><td class="no">no</td><td class="no">`, `24 GB</td><td class="yes">fits</td><td class="no">`, `32 GB</td><td class="yes">fits</td><td class="yes">`} {
		if !strings.Contains(page, row) {
			t.Errorf("the page lacks %s", row)
		}
	}
}

// unread is a report without any weights read.
func unread() *describe.Report {
	r := report("m")
	r.Histogram = describe.Histogram{}
	for i := range r.Units {
		r.Units[i].Histogram = describe.Histogram{}
	}
	return r
}

// checkMarkup wants every SVG to be well-formed XML.
func checkMarkup(t *testing.T, name string, page []byte) {
	t.Helper()
	for rest := string(page); ; {
		_, after, ok := strings.Cut(rest, "<svg")
		if !ok {
			return
		}
		chart, tail, ok := strings.Cut(after, "</svg>")
		if !ok || !strings.Contains(chart, "aria-hidden") {
			t.Errorf("%s: a chart has no end or is read aloud as shapes", name)
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
	b, err := charts.PNG(report("m"))
	must(t, err)
	img, err := png.Decode(bytes.NewReader(b))
	must(t, err)
	sum := sha256.New()
	for y := range img.Bounds().Dy() {
		for x := range img.Bounds().Dx() {
			r, g, b, a := img.At(x, y).RGBA()
			sum.Write([]byte{byte(r >> 8), byte(g >> 8), byte(b >> 8), byte(a >> 8)})
		}
	}
	got, file := hex.EncodeToString(sum.Sum(nil))+"\n", filepath.Join("testdata", "plot.sha256")
	if *update {
		must(t, os.WriteFile(file, []byte(got), 0o666))
	}
	want, err := os.ReadFile(file)
	must(t, err)
	if got != string(want) {
		t.Errorf("the pixels changed; look at the picture, then run the test with -update")
	}
	for _, r := range []*describe.Report{{}, unread(), {Name: "x", Refused: "y", BF16Bytes: 5}} {
		if _, err := charts.PNG(r); err != nil {
			t.Error(err)
		}
	}
}

// BenchmarkPNG draws the picture of a model card.
func BenchmarkPNG(b *testing.B) {
	r := report("m")
	for b.Loop() {
		if _, err := charts.PNG(r); err != nil {
			b.Fatal(err)
		}
	}
}

// TestHTMLOfManyUnitsTakesNoMorePerUnit: four times the units take about four times the memory, not sixteen times.
func TestHTMLOfManyUnitsTakesNoMorePerUnit(t *testing.T) {
	page := func(n int) int64 {
		u := report("m").Units[0]
		r := &describe.Report{Kind: describe.KindDF11, BF16Bytes: 2, DF11Bytes: 1}
		for i := range n {
			u.Path = fmt.Sprintf("model.layers.%d", i)
			r.Units = append(r.Units, u)
		}
		r.Finish()
		return alloc.Bytes(func() { charts.HTML(r) })
	}
	if few, many := page(1000), page(4000); many > 5*few {
		t.Errorf("%d bytes for 1000 units, %d for 4000", few, many)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
