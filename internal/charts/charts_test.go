package charts_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/df11-convert/df11-convert/internal/charts"
	"github.com/df11-convert/df11-convert/internal/describe"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

var update = flag.Bool("update", false, "write testdata/plot.sha256 again")

// report is a model of two single units and a stack, with round numbers.
func report(name string) *describe.Report {
	r := &describe.Report{
		Name: name, Files: 8, BF16Bytes: 10_000_000, DF11Bytes: 6_900_000,
		Parts: describe.Parts{SignMantissa: 4_900_000, Exponents: 1_700_000, Unchanged: 200_000},
	}
	for _, path := range []string{"model.layers.10", "lm_head", "model.layers.2", "model.layers.1"} {
		u := describe.Unit{Path: path, Weights: 1000, Bytes: 1400, NBits: 2700}
		for i, n := range []uint64{1, 9, 90, 300, 400, 190, 9, 1} {
			u.Histogram[115+i] = n
		}
		u.Finish()
		r.Units = append(r.Units, u)
	}
	r.Finish()
	return r
}

// evil is a name that would be markup, turns what follows, and is long.
var evil = `</style><script>alert("x")</script>&` + "\u202e\x00\xff" + strings.Repeat("long", 2500)

// checkNames checks that no name is markup, turns what is around it, or fills a page.
func checkNames(t *testing.T, page string) {
	t.Helper()
	if !utf8.ValidString(page) || strings.ContainsAny(page, "\u202e\x00") {
		t.Errorf("the page has characters that show no glyph")
	}
	if strings.Contains(page, strings.Repeat("long", 75)) {
		t.Errorf("a name fills the page")
	}
}

// The page refers to nothing outside and has no script, and no name becomes markup.
func TestHTML(t *testing.T) {
	r := report(evil)
	r.Units[0].Path = evil
	r.Traps = append(r.Traps, model.Problem{Name: evil, Detail: evil})
	for name, r := range map[string]*describe.Report{"full": r, "unread": unread(), "empty": {Name: evil}} {
		page := html(t, r)
		checkNames(t, page)
		if page != html(t, r) {
			t.Errorf("%s: the same report gives another page", name)
		}
		for _, bad := range []string{"http:", "https:", "<script", "NaN", "Inf", ">-0", "ZgotmplZ"} {
			if strings.Contains(page, bad) {
				t.Errorf("%s: the page has %s", name, bad)
			}
		}
	}
	if claim := regexp.MustCompile(`(?i)the same|equal|lossless|bit for bit|identical`).FindString(html(t, report("m"))); claim != "" {
		t.Errorf("the page, which compares nothing, says %q", claim)
	}
	for _, part := range []string{`>DF11 6.90 MB</text>`, `x="49.000%" y="80" width="17.000%"`, // exponents in their place
		`<th scope="row">-8</th><td class="bar" style="--bar:1.000">40.00%</td>`,
		`<td class="bar moved" style="--bar:0.347">24.64%</td>`} { // to scale with the largest, in the drawing's color
		if !strings.Contains(html(t, report("m")), part) {
			t.Errorf("the page lacks %s", part)
		}
	}
}

func html(t *testing.T, r *describe.Report) string {
	t.Helper()
	b, err := charts.HTML(r, "v1")
	must(t, err)
	return string(b)
}

// Zeros, subnormals, and single exponents far away don't stretch the axis up to them.
func TestFewZerosKeepTheAxis(t *testing.T) {
	columns := func(r *describe.Report) int { return strings.Count(html(t, r), `<th scope="row">`) }
	whole := columns(report("m"))
	for name, odd := range map[string]map[int]uint64{"zeros": {0: 3}, "many zeros": {0: 1000}, "tiny": {5: 1}, "large": {230: 1}, "all": {0: 9, 7: 1, 60: 1, 239: 1}} {
		r := report("m")
		for e, n := range odd {
			r.Histogram[e] += n
		}
		if n := columns(r); n < whole || n > whole+1 {
			t.Errorf("%s: %d columns, without them %d", name, n, whole)
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

// The picture's pixels are the same on every machine.
func TestPNG(t *testing.T) {
	b, err := charts.PNG(report("m"))
	must(t, err)
	sum := sha256.Sum256(world.Pixels(t, b))
	got, file := hex.EncodeToString(sum[:])+"\n", filepath.Join("testdata", "plot.sha256")
	if *update {
		must(t, os.WriteFile(file, []byte(got), 0o666))
	}
	want, err := os.ReadFile(file)
	must(t, err)
	if got != string(want) {
		t.Errorf("the pixels changed; look at the picture, then run the test with -update")
	}
	for _, r := range []*describe.Report{{}, unread(), {Name: "x", BF16Bytes: 5}} {
		if _, err := charts.PNG(r); err != nil {
			t.Error(err)
		}
	}
}

// must ends the test if err isn't nil.
var must = world.Must

// The page about a list has no script, escapes every name, asks for nothing, and counts what needs
// somebody. A badge is XML.
func TestStatus(t *testing.T) {
	models := []charts.Published{
		{Source: charts.Link{Name: "org/a", URL: "https://hub/org/a"}, State: "current",
			Mood: charts.Good, BF16: 1000, DF11: 683, Weights: 40_960, Made: "0123456789abcdef",
			Updated: "2026-11-20", Days: 1},
		{Source: charts.Link{Name: evil, URL: "javascript:alert(1)"}, State: evil, Mood: charts.Bad, Needs: evil},
	}
	for _, list := range [][]charts.Published{models, nil} {
		b, err := charts.StatusHTML(evil, list, "today", "v1")
		must(t, err)
		page := string(b)
		checkNames(t, page)
		for _, bad := range []string{"<script", "javascript:", " src=", "@import"} {
			if strings.Contains(page, bad) {
				t.Errorf("the page has %s", bad)
			}
		}
		want := []string{"The list has no models."}
		if list != nil {
			want = []string{`<span class="mood good">1</span> current`, "68.30%", "40,960", "01234567<",
				"2026-11-20, 1 day ago", `<span class="mood bad">1</span> for you to look at`, `colspan="7">&lt;`}
		}
		for _, part := range want {
			if !strings.Contains(page, part) {
				t.Errorf("the page lacks %s:\n%s", part, page)
			}
		}
	}
	b, err := charts.StatusHTML("list", models, "today", "v1")
	must(t, err)
	if bad, good := bytes.Index(b, []byte(`<tbody id="bad">`)), bytes.Index(b, []byte(`<tbody id="good">`)); bad < 0 || good < bad {
		t.Errorf("what needs somebody doesn't come first: at %d, what is current at %d", bad, good)
	}
	for i, want := range []string{"68.30% of BF16 on 2026-11-28", `</style><script>alert("x")</script>&\u202e\u0000\xff`} {
		var badge struct {
			Title string `xml:"title"`
		}
		must(t, xml.Unmarshal(models[i].Badge("2026-11-28"), &badge))
		if i == 0 && badge.Title != "DF11: "+want || !strings.HasPrefix(badge.Title, "DF11: "+want) ||
			!strings.HasSuffix(badge.Title, " on 2026-11-28") {
			t.Errorf("a badge says %q", badge.Title)
		}
	}
}
