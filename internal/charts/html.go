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
	"slices"
	"strconv"

	"github.com/df11-convert/df11-convert/internal/describe"
	"github.com/df11-convert/df11-convert/internal/gpus"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/metadata"
)

// The page, its style sheet and its script. The script only adds to what the page shows without it: read-outs, sorting and
// copying.
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
	Codes  []codeLine
	Limits []limit
	Charts *plots // nil if no weights were read
}

// HTML returns the report as one page without references to anything outside. The report must be finished.
func HTML(r *describe.Report) []byte {
	p := pageData{Report: r, Style: style, Script: script, Limits: limits(r)}
	if r.DF11Bytes > 0 && len(r.Units) > 0 {
		p.Sizes = []bar{{"BF16", r.BF16Bytes, before(r)}, {"DF11", r.DF11Bytes, after(r)}}
	}
	codes := codeLines(r)
	p.Codes = slices.DeleteFunc(codes[:], func(l codeLine) bool { return l.Longest == 0 })
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
	"ratio":  share,
	"class":  partClass,
	"reason": metadata.ReasonText,
	"width": func(part, whole int64) template.CSS {
		return template.CSS(fmt.Sprintf("width:%.2f%%", 100*float64(part)/math.Max(1, float64(whole))))
	},
	"max":   func(a, b int64) int64 { return max(a, b) },
	"short": func(sha256 string) string { return sha256[:min(12, len(sha256))] },
}

// plots are the page's plots and what they stand on.
type plots struct {
	Shares, Lengths template.HTML
	Ticks           []tick // below the plots by exponent
	Note            string // on their labels
	Bits, Heat      template.HTML
	Runs            []tick // below the plots by unit
	Readouts        readouts

	columns []column
	slots   map[string]string // of units, by path
}

// tick is a label at a place of an axis, in percent of its length.
type tick struct {
	At    float64
	Text  string
	Power bool // Text is an exponent of 2
}

// readouts is what the script shows at the cursor.
type readouts struct {
	Exponents []string `json:"e"` // by slot
	Units     []string `json:"u"`
	Heat      matrix   `json:"heat"`
}

// drawPlots draws the plots.
func drawPlots(r *describe.Report, units []*describe.Unit) *plots {
	columns, s := axis(&r.Histogram), newSlots(units)
	bars := exponentBars(r, columns)
	heat := s.exponents(columns)
	p := &plots{
		Shares: shares(r, bars), Lengths: lengths(bars), Ticks: exponentTicks(columns), Note: axisNote(columns),
		Bits: s.bits(r), Heat: heat.draw(columns), columns: columns, slots: map[string]string{},
		Readouts: readouts{Units: s.readouts(), Heat: heat},
	}
	for _, b := range bars {
		p.Readouts.Exponents = append(p.Readouts.Exponents, b.readout())
	}
	for i, u := range s.units {
		if u != nil {
			p.slots[u.Path] = strconv.Itoa(i)
		}
	}
	for _, x := range s.named() {
		p.Runs = append(p.Runs, tick{At: 100 * float64(x.first) / float64(len(s.units)), Text: x.name})
	}
	return p
}

// Slot is the place of a unit in the plots by unit; "" if it has none.
func (p *plots) Slot(path string) string {
	if p == nil {
		return ""
	}
	return p.slots[path]
}

// Place is the place of an exponent in the plots by exponent; "" if it has none.
func (p *plots) Place(exponent int) string {
	if p == nil {
		return ""
	}
	within := func(c column) bool { return !c.gap && c.first <= exponent && exponent <= c.last }
	if i := slices.IndexFunc(p.columns, within); i >= 0 {
		return strconv.Itoa(i)
	}
	return ""
}

// exponentTicks labels the axis of exponents, with about eight labels, which fit the page of a phone.
func exponentTicks(columns []column) (list []tick) {
	for i, labeled := range ticks(columns, max(1, (len(columns)+7)/8)) {
		if !labeled {
			continue
		}
		t := tick{At: 100 * (float64(i) + 0.5) / float64(len(columns)), Text: columns[i].short(columns), Power: columns[i].single()}
		if t.Power {
			t.Text = minus(columns[i].first - bias)
		}
		list = append(list, t)
	}
	return list
}

// limit is how close a model comes to a limit of the format.
type limit struct {
	Name, Unit string
	Value, Max int64
}

// limits lists the largest value of each measure over the units.
func limits(r *describe.Report) []limit {
	chunk := "weights in the fullest chunk"
	if r.Kind == describe.KindSource {
		chunk = "weights in a chunk, mean"
	}
	list := []limit{
		{Name: "weights in a module", Max: describe.MaxWeights},
		{Name: chunk, Max: describe.MaxChunk},
		{Name: "rows of lookup tables", Max: describe.MaxLUTs},
		{Name: "largest exponent", Max: describe.MaxExponent},
		{Name: "longest code, in bits", Max: describe.MaxCode},
	}
	for _, u := range r.Units {
		if u.Reason != "" {
			continue
		}
		for i, v := range []int64{u.Weights, int64(u.LargestChunk), int64(u.LUTs), int64(u.LargestExponent), int64(u.Longest)} {
			if v > list[i].Value {
				list[i].Value, list[i].Unit = v, u.Path
			}
		}
	}
	return list
}
