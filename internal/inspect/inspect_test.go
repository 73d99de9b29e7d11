package inspect_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"html"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/alloc"
	"github.com/df11-convert/df11-convert/internal/gpus"
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
		u.Modules = []inspect.Module{{Name: "self_attn.q_proj", Tensors: 1, Weights: 400}, {Name: "mlp.up_proj", Tensors: 6, Weights: 600}}
		u.Modules[0].Histogram[119] = 400
		u.Modules[1].Histogram = u.Histogram
		u.Modules[1].Histogram[119] = 0
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

// TestHTML: the page is well formed, refers to nothing outside, and no name becomes markup or script.
func TestHTML(t *testing.T) {
	evil := `</script><script>alert("x")</script>&`
	r := report(evil)
	r.Units[0].Path = evil
	r.Units[0].Modules[0].Name = evil
	empty := &inspect.Report{}
	for name, r := range map[string]*inspect.Report{"full": r, "refused": {Model: inspect.Model{Name: evil, Kind: inspect.Source, Refused: evil}}, "unread": unread(), "empty": empty} {
		b := inspect.HTML(r)
		for range 5 {
			if !bytes.Equal(b, inspect.HTML(r)) {
				t.Errorf("%s: the same report gives another page", name)
			}
		}
		if n := bytes.Count(b, []byte("<script")); n != 3 || bytes.Count(b, []byte("</script")) != 3 {
			t.Errorf("%s: %d scripts, want the data, the read-outs and the page's own", name, n)
		}
		shown, _, _ := bytes.Cut(b, []byte("<script>"))
		if bytes.Contains(b, []byte("http:")) || bytes.Contains(b, []byte("https:")) || bytes.Contains(shown, []byte("NaN")) || bytes.Contains(shown, []byte("Inf")) {
			t.Errorf("%s: the page holds an address or a number that is none", name)
		}
		checkMarkup(t, name, b)
		checkData(t, name, b)
	}
}

// checkData wants the report inside the page to be its JSON, and the policy to allow the page's script and no other.
func checkData(t *testing.T, name string, page []byte) {
	t.Helper()
	_, rest, _ := strings.Cut(string(page), `id="data">`)
	data, rest, _ := strings.Cut(rest, "</script>")
	var got struct {
		Units []struct{ Path string }
		Bits  *float64
	}
	if err := json.Unmarshal([]byte(data), &got); err != nil || got.Bits == nil {
		t.Errorf("%s: the data is not the report: %v", name, err)
	}
	_, rest, _ = strings.Cut(rest, "<script>")
	script, _, _ := strings.Cut(rest, "</script>")
	sum := sha256.Sum256([]byte(script))
	if policy := "script-src &#39;sha256-" + html.EscapeString(base64.StdEncoding.EncodeToString(sum[:])); !strings.Contains(string(page), strings.ReplaceAll(policy, "+", "&#43;")) {
		t.Errorf("%s: the policy does not allow the page's script", name)
	}
}

// TestFewZerosKeepTheAxis: zeros, subnormals and lone exponents far away take a column each, not the axis up to them.
func TestFewZerosKeepTheAxis(t *testing.T) {
	columns := func(r *inspect.Report) int {
		_, rest, _ := strings.Cut(string(inspect.HTML(r)), `data-x="e" data-slots="`)
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
	page := string(inspect.HTML(r))
	_, rest, _ := strings.Cut(page, `<div class="runs">`)
	labels, _, _ := strings.Cut(rest, "</div>")
	if n := strings.Count(labels, "<span"); n == 0 || n > 6 {
		t.Errorf("%d names", n)
	}
	if n := strings.Count(page, `<tr data-u="`); n != 44 {
		t.Errorf("%d units have a place", n)
	}
}

// TestTooManyKindsOfModulesAreNoChart: names that a stranger made up do not take memory for each of them and each unit.
func TestTooManyKindsOfModulesAreNoChart(t *testing.T) {
	for n, charts := range map[int]int{100: 2, 1000: 1} { // what has rows of modules or of exponents
		r := report("m")
		for i := range n {
			u := r.Units[0]
			u.Modules = slices.Clone(u.Modules)
			u.Path, u.Modules[0].Name = fmt.Sprintf("blocks.%d", i), "kind"+strings.Repeat("x", i)
			r.Units = append(r.Units, u)
		}
		if got := bytes.Count(inspect.HTML(r), []byte("data-y=")); got != charts {
			t.Errorf("%d kinds: %d charts with rows, want %d", n, got, charts)
		}
	}
}

// TestModules: a module's bits are those of its weights under the unit's code.
func TestModules(t *testing.T) {
	m := report("m").Units[0].Modules
	if m[0].Read != 400 || m[1].Read != 600 || m[0].CodeBits != 1 || m[0].Entropy != 0 {
		t.Fatalf("%+v", m)
	}
	if got := (400*m[0].CodeBits + 600*m[1].CodeBits) / 1000; math.Abs(got-2.043) > 1e-9 {
		t.Errorf("the mean of the modules' codes is %v bits", got)
	}
	if math.Abs(m[0].Bits-(11.2+1-2.7)) > 1e-9 {
		t.Errorf("%v bits per weight", m[0].Bits)
	}
}

// TestGPUs: the largest block that is decoded needs room beside the stored bytes.
func TestGPUs(t *testing.T) {
	r := &inspect.Report{BF16Bytes: 16e9, DF11Bytes: 11e9, Units: []inspect.Unit{{Path: "a", Weights: 1e9}, {Path: "b", Weights: 7e9, Bytes: 10e9}}}
	r.Finish()
	want := []gpus.Fit{{N: 1, GiB: 16}, {N: 1, GiB: 24, BF16: true}, {N: 1, GiB: 32, BF16: true, DF11: true}}
	if r.LargestBlock != 14e9 || !slices.Equal(r.GPUs, want) {
		t.Errorf("block of %d bytes, %+v", r.LargestBlock, r.GPUs)
	}
}

// TestPlain: entropy of sign and mantissa is measured, not assumed.
func TestPlain(t *testing.T) {
	r := report("m")
	r.Units[0].Plain.AddPlain([]byte{0x00, 0x3f, 0x7f, 0xbf, 0x00, 0x3f, 0x7f, 0xbf})
	r.Finish()
	if p := *r.Plain; p != (inspect.Plain{Sign: 1, Mantissa: 1, Both: 1}) {
		t.Errorf("%+v", p)
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

// TestHTMLOfManyUnitsTakesNoMorePerUnit: four times the units take about four times the memory, not sixteen times.
func TestHTMLOfManyUnitsTakesNoMorePerUnit(t *testing.T) {
	page := func(n int) int64 {
		u := report("m").Units[0]
		r := &inspect.Report{Model: inspect.Model{Kind: inspect.DF11}, BF16Bytes: 2, DF11Bytes: 1}
		for i := range n {
			u.Path = fmt.Sprintf("model.layers.%d", i)
			r.Units = append(r.Units, u)
		}
		r.Finish()
		return alloc.Bytes(func() { inspect.HTML(r) })
	}
	if few, many := page(1000), page(4000); many > 5*few {
		t.Errorf("%d bytes for 1000 units, %d for 4000", few, many)
	}
}
