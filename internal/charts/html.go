// Package charts shows a report about a DF11 model: as a model card's picture, and as a page with
// the same bars and tables. It measures nothing. The same report has the same bytes on every
// machine.
package charts

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"strings"

	"github.com/df11-convert/df11-convert/internal/describe"
	"github.com/df11-convert/df11-convert/internal/fits"
	"github.com/df11-convert/df11-convert/internal/human"
)

// The page and its style sheets. It has no script.
var (
	//go:embed report.html.tmpl
	page string
	//go:embed bars.css
	barsStyle template.CSS
	//go:embed report.css
	style template.CSS
)

// HTML returns the report as one page that refers to nothing outside. Call Finish of the report
// first.
func HTML(r *describe.Report, version string) ([]byte, error) {
	t := template.Must(template.New("report").Funcs(pageFuncs()).Parse(page))
	var b bytes.Buffer
	err := t.Execute(&b, map[string]any{
		"Report": r, "Version": version, "Style": barsStyle + style, "Exponents": exponentRows(r),
		"GPUs": fits.Weights{BF16: r.BF16Bytes, DF11: r.DF11Bytes,
			Largest: r.LargestModule}.Table(),
		"Drawing": template.HTML(Drawing(r)),
	})
	return b.Bytes(), err
}

// exponentRow is the page's row for an exponent, or for all exponents at one end of the axis: how
// many weights have it, and how many bits its codes take on average, weighted by the modules'
// weights. Bits is 0 if no module has a code for it.
type exponentRow struct {
	Name    string
	Weights int64
	Bits    float64
}

func exponentRows(r *describe.Report) (rows []exponentRow) {
	var weights, bits [256]float64
	for _, u := range r.Units {
		for _, c := range u.Codes {
			// a code counts even if none of the weights that were read has it
			n := 1 + float64(u.Histogram[c.Exponent])
			weights[c.Exponent] += n
			bits[c.Exponent] += n * float64(c.Bits)
		}
	}
	for _, c := range axis(&r.Histogram) {
		row, n := exponentRow{Name: c.String(), Weights: int64(c.count(&r.Histogram))}, 0.0
		for e := c.first; e <= c.last; e++ {
			row.Bits, n = row.Bits+bits[e], n+weights[e]
		}
		row.Bits /= max(1, n)
		rows = append(rows, row)
	}
	return rows
}

func pageFuncs() template.FuncMap {
	return template.FuncMap{
		"size":  human.Bytes,
		"count": human.Grouped,
		"share": share,
		"bits":  func(x float64) string { return fmt.Sprintf("%.2f", x) },
		"bar": func(part, whole float64) template.CSS { // length of a row's bar, from 0 to 1
			return template.CSS(fmt.Sprintf("--bar:%.3f", part/max(1, whole)))
		},
		"float": func(n int64) float64 { return float64(n) },
		"breakable": func(name string) template.HTML { // only after a dot
			return template.HTML(strings.ReplaceAll(template.HTMLEscapeString(name), ".", ".<wbr>"))
		},
	}
}
