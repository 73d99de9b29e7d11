package inspect

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

	"github.com/df11-convert/df11-convert/internal/human"
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
	*Report
	Style  template.CSS
	Script template.JS
	Charts *charts // nil if no weights were read
}

// Readouts are what the script shows.
func (p pageData) Readouts() any {
	if p.Charts == nil {
		return struct{}{}
	}
	return p.Charts.Readouts
}

// Widest is the size that fills the width of the size bars.
func (p pageData) Widest() int64 { return max(1, p.BF16Bytes, p.DF11Bytes) }

// Slot is the place of a unit in the plots by unit; "" if it has none.
func (p pageData) Slot(path string) string {
	if p.Charts == nil {
		return ""
	}
	return p.Charts.slots[path]
}

// Place is the place of an exponent in the plots by exponent; "" if it has none.
func (p pageData) Place(exponent int) string {
	if p.Charts == nil {
		return ""
	}
	within := func(c column) bool { return !c.gap && c.first <= exponent && exponent <= c.last }
	if i := slices.IndexFunc(p.Charts.columns, within); i >= 0 {
		return strconv.Itoa(i)
	}
	return ""
}

// Policy is the page's Content-Security-Policy: nothing is loaded, and no script runs but the page's own.
func (p pageData) Policy() string {
	sum := sha256.Sum256([]byte(p.Script))
	return "default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// charts are the page's plots and what they stand on.
type charts struct {
	columns []column
	slots   map[string]string // of units, by path

	Shares, Lengths template.HTML
	Ticks           []tick // below the plots by exponent
	Note            string // on their labels

	Bits, Modules, Heat template.HTML
	Runs                []tick  // below the plots by unit
	Low, High           float64 // bits per weight that Modules has colors for

	Readouts readouts
}

// tick is a label at a place of an axis, in percent of its length.
type tick struct {
	At    float64
	Text  string
	Power bool   // Text is an exponent of 2
	Class string // "wide" or "narrow": only on such a page
}

// readouts is what the script shows at the cursor.
type readouts struct {
	Exponents []string          `json:"e"` // by slot
	Units     []string          `json:"u"`
	Rows      map[string]matrix `json:"rows"` // by the name of the plot's rows
}

// HTML returns the report as one page without references to anything outside. The report must be finished.
func HTML(r *Report) []byte {
	p := pageData{Report: r, Style: style, Script: script}
	if units := r.chartUnits(); len(units) > 0 {
		p.Charts = r.draw(units)
	}
	t := template.Must(template.New("report").Funcs(pageFuncs).Parse(page))
	var b bytes.Buffer
	if err := t.Execute(&b, p); err != nil {
		panic("inspect: internal error: " + err.Error()) // the template and its data are ours
	}
	return b.Bytes()
}

// draw draws the plots.
func (r *Report) draw(units []*Unit) *charts {
	bars, s := r.bars(), newSlots(units)
	c := &charts{Shares: r.shares(bars), Lengths: r.lengths(bars), Bits: s.bits(r)}
	columns := make([]column, len(bars))
	for i, b := range bars {
		columns[i] = b.column
		c.Readouts.Exponents = append(c.Readouts.Exponents, b.readout())
	}
	c.columns, c.slots = columns, map[string]string{}
	for i, u := range s.units {
		if u != nil {
			c.slots[u.Path] = strconv.Itoa(i)
		}
	}
	c.Note, c.Ticks = axisNote(columns), exponentTicks(columns)
	c.Readouts.Units = s.readouts()
	for _, x := range s.named() {
		c.Runs = append(c.Runs, tick{At: 100 * float64(x.first) / float64(len(s.units)), Text: x.name})
	}
	modules, exponents := s.modules(), s.exponents(bars)
	c.Readouts.Rows = map[string]matrix{"m": modules, "e": exponents}
	c.Heat = exponents.drawExponents(columns)
	if len(modules.Rows) > 0 {
		c.Modules, c.Low, c.High = modules.drawModules()
	}
	return c
}

// exponentTicks labels the axis of exponents: about 22 labels where the page is wide, 8 where it is narrow.
func exponentTicks(columns []column) (list []tick) {
	wide := ticks(columns, max(1, (len(columns)+21)/22))
	narrow := ticks(columns, max(1, (len(columns)+7)/8))
	for i, c := range columns {
		if !wide[i] && !narrow[i] {
			continue
		}
		t := tick{At: 100 * (float64(i) + 0.5) / float64(len(columns)), Class: "both", Text: c.short(columns)}
		if t.Power = c.single(); t.Power {
			t.Text = minus(c.first - bias)
		}
		switch {
		case !narrow[i]:
			t.Class = "wide"
		case !wide[i]:
			t.Class = "narrow"
		}
		list = append(list, t)
	}
	return list
}

var pageFuncs = template.FuncMap{
	"size":  human.Bytes,
	"count": func(n int64) string { return human.Grouped(n, ",") },
	"share": func(part, whole int64) string { return share(float64(part), float64(whole)) },
	"fixed": func(digits int, x float64) string { return fmt.Sprintf("%.*f", digits, x) },
	"ratio": share,
	"width": func(part, whole int64) template.CSS {
		return template.CSS(fmt.Sprintf("width:%.2f%%", 100*float64(part)/math.Max(1, float64(whole))))
	},
	"short": func(sha256 string) string { return sha256[:min(12, len(sha256))] },
}
