// Package charts draws the report about a model: as a page with plots, and as the picture of a model card. It measures nothing;
// the same report gives the same bytes on every machine.
package charts

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"

	"github.com/df11-convert/df11-convert/internal/describe"
	"github.com/df11-convert/df11-convert/internal/gpus"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/metadata"
)

// The page, its style sheet and its script. The script only adds to what the page shows without it: read-outs and
// sorting.
var (
	//go:embed report.html.tmpl
	page string
	//go:embed report.css
	style template.CSS
	//go:embed report.js
	script template.JS
)

// pageData is the data of report.html.tmpl.
type pageData struct {
	*describe.Report
	Style  template.CSS
	Script template.JS
	Sizes  []bar
	Charts *plots // nil if no weights were read
}

// HTML returns the report as one page without references to anything outside. The report must be finished.
func HTML(r *describe.Report) []byte {
	p := pageData{Report: r, Style: style, Script: script}
	if r.DF11Bytes > 0 && len(r.Units) > 0 {
		p.Sizes = []bar{{"BF16", r.BF16Bytes, before(r)}, {"DF11", r.DF11Bytes, after(r)}}
	}
	if units := chartUnits(r); len(units) > 0 {
		p.Charts = drawPlots(r, units)
	}
	t := template.Must(template.New("report").Funcs(pageFuncs).Parse(page))
	var b bytes.Buffer
	if err := t.Execute(&b, p); err != nil {
		panic("charts: internal error: " + err.Error()) // the template and its data are ours
	}
	return b.Bytes()
}

// LargestBlock is the size in BF16 of the largest module that is decoded at once.
func (p pageData) LargestBlock() (nBytes int64) {
	for _, u := range p.Units {
		if u.Reason == "" {
			nBytes = max(nBytes, 2*u.Weights)
		}
	}
	return nBytes
}

// GPUs are those that hold the weights.
func (p pageData) GPUs() []gpus.Fit { return gpus.Fits(p.BF16Bytes, p.DF11Bytes, p.LargestBlock()) }

// Policy is the page's Content-Security-Policy: nothing is loaded, and no script runs but the page's own.
func (p pageData) Policy() string {
	sum := sha256.Sum256([]byte(p.Script))
	return "default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

var pageFuncs = template.FuncMap{
	"size":   human.Bytes,
	"count":  func(n int64) string { return human.Grouped(n, ",") },
	"share":  func(part, whole int64) string { return share(float64(part), float64(whole)) },
	"fixed":  func(digits int, x float64) string { return fmt.Sprintf("%.*f", digits, x) },
	"class":  partClass,
	"reason": metadata.ReasonText,
	"width": func(part, whole int64) template.CSS {
		return template.CSS(fmt.Sprintf("width:%.2f%%", 100*float64(part)/math.Max(1, float64(whole))))
	},
	"breakable": func(name string) template.HTML { // behind a dot, and nowhere else
		return template.HTML(strings.ReplaceAll(template.HTMLEscapeString(name), ".", ".<wbr>"))
	},
	"max":   func(a, b int64) int64 { return max(a, b) },
	"short": func(sha256 string) string { return sha256[:min(12, len(sha256))] },
}

// plots are the page's plots and what stands beside them.
type plots struct {
	Shares, Lengths, Bits template.HTML
	Ticks                 []tick // below the plots by exponent
	Note                  string // on their labels
	Runs                  []tick // below the plot by unit
	Readouts              readouts

	slots map[string]string // of units, by path
}

// tick is a label at a place of an axis, in percent of its length.
type tick struct {
	At    float64
	Text  string
	Power bool // Text is an exponent of 2
}

// readouts is what the script shows at the cursor, by slot.
type readouts struct {
	Exponents []string `json:"e"`
	Units     []string `json:"u"`
}

// drawPlots draws the plots.
func drawPlots(r *describe.Report, units []*describe.Unit) *plots {
	columns, s := axis(&r.Histogram), newSlots(units)
	bars := exponentBars(r, columns)
	p := &plots{
		Shares: shares(r, bars), Lengths: lengths(bars), Ticks: exponentTicks(columns), Note: axisNote(columns),
		Bits: s.bits(r), slots: map[string]string{}, Readouts: readouts{Units: make([]string, len(s.units))},
	}
	for _, b := range bars {
		p.Readouts.Exponents = append(p.Readouts.Exponents, b.readout())
	}
	for i, u := range s.units {
		if u != nil {
			p.slots[u.Path] = strconv.Itoa(i)
			p.Readouts.Units[i] = fmt.Sprintf("%s: %.3f bits per weight, bound %.3f", u.Path, u.Bits, u.Bound)
		}
	}
	for _, x := range s.named() {
		p.Runs = append(p.Runs, tick{At: 100 * float64(x.first) / float64(len(s.units)), Text: x.name})
	}
	return p
}

// Slot is the place of a unit in the plot by unit; "" if it has none.
func (p *plots) Slot(path string) string {
	if p == nil {
		return ""
	}
	return p.slots[path]
}

// exponentTicks labels the axis of exponents, with about eight labels, which fit the page of a phone.
func exponentTicks(columns []column) (list []tick) {
	for i, c := range columns {
		if !labeled(columns, i, max(1, (len(columns)+7)/8)) {
			continue
		}
		t := tick{At: 100 * (float64(i) + 0.5) / float64(len(columns)), Text: c.label, Power: c.label == ""}
		if t.Power {
			t.Text = minus(c.first - bias)
		}
		list = append(list, t)
	}
	return list
}
