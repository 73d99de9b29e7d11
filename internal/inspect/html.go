package inspect

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"math"

	"github.com/df11-convert/df11-convert/internal/human"
)

//go:embed report.html.tmpl
var page string

// pageData is the data of report.html.tmpl.
type pageData struct {
	*Report
	Anatomy, Exponents, Layers, Heat template.HTML
}

// Charts reports whether the page has charts by exponent: only if weights were read.
func (p pageData) Charts() bool { return p.Exponents != "" }

// HTML returns the report as one page without references to anything outside. The report must be finished.
func HTML(r *Report) []byte {
	p := pageData{Report: r}
	if len(r.Units) > 0 && r.DF11Bytes > 0 {
		p.Anatomy = r.anatomy()
	}
	if len(r.chartUnits()) > 0 {
		p.Exponents, p.Layers, p.Heat = r.exponents(), r.layers(), r.heat()
	}
	t := template.Must(template.New("report").Funcs(pageFuncs).Parse(page))
	var b bytes.Buffer
	if err := t.Execute(&b, p); err != nil {
		panic("inspect: internal error: " + err.Error()) // the template and its data are ours
	}
	return b.Bytes()
}

var pageFuncs = template.FuncMap{
	"size":  human.Bytes,
	"count": func(n int64) string { return human.Grouped(n, "\u202f") }, // thin spaces
	"share": func(part, whole int64) string { return share(float64(part), float64(whole)) },
	"fixed": func(digits int, x float64) string { return fmt.Sprintf("%.*f", digits, x) },
	"sub":   func(a, b float64) float64 { return a - b },
	"ratio": share,
	"width": func(part, whole int64) template.CSS {
		return template.CSS(fmt.Sprintf("width:%.2f%%", 100*float64(part)/math.Max(1, float64(whole))))
	},
}

// Limit is how close a model comes to a limit of the format.
type Limit struct {
	Name, Unit string
	Value, Max int64
}

// Limits lists the largest value of each measure over the units.
func (r *Report) Limits() []Limit {
	list := []Limit{
		{Name: "weights in a unit", Max: MaxWeights},
		{Name: map[Kind]string{Source: "weights in a mean chunk", DF11: "weights in the fullest chunk"}[r.Kind], Max: MaxChunk},
		{Name: "rows of lookup tables", Max: MaxLUTs},
		{Name: "largest exponent", Max: MaxExponent},
		{Name: "longest code, in bits", Max: 32},
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
