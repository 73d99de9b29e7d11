// Package charts shows a report about a DF11 model: as a model card's picture, and as a page with
// the same bars and tables. It measures nothing. The same report has the same bytes on every
// machine.
package charts

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"slices"

	"github.com/df11-convert/df11-convert/internal/describe"
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
	t := template.Must(template.New("report").Funcs(pageFuncs).Parse(page))
	rows, most, largest := exponentRows(&r.Histogram), int64(0), int64(0)
	for _, row := range rows {
		most = max(most, row.Weights)
	}
	for _, part := range r.Parts.List() {
		largest = max(largest, part.Bytes)
	}
	var b bytes.Buffer
	err := t.Execute(&b, map[string]any{
		"Report": r, "Version": version, "Style": barsStyle + style,
		"Exponents": rows, "Most": most, "Largest": largest, "Bands": after(r),
		"Drawing": template.HTML(Drawing(r)),
	})
	return b.Bytes(), err
}

// bias is the exponent bias of BF16: values with exponent e are at least 2^(e-bias).
const bias = 127

// usual returns the exponents that a chart shows: those around the most frequent one, as long as at
// least one weight in 10,000 has them. So a few odd weights, such as zeros, can't empty it.
func usual(h *describe.Histogram) (first, last int) {
	least := max(1, h.Total()/10_000)
	best := slices.Index(h[:], slices.Max(h[:]))
	for first = best; first > 0 && h[first-1] >= least; {
		first--
	}
	for last = best; last < len(h)-1 && h[last+1] >= least; {
		last++
	}
	return first, last
}

// exponentRow is the page's row for an exponent.
type exponentRow struct {
	Power   int
	Weights int64
}

func exponentRows(h *describe.Histogram) (rows []exponentRow) {
	first, last := usual(h)
	for e := first; e <= last; e++ {
		rows = append(rows, exponentRow{e - bias, int64(h[e])})
	}
	return rows
}

// longestText is how many characters of a name a page shows. A repo may have longer ones, to hide
// what follows.
const longestText = 300

// text makes a text from outside fit for a page: nothing in it turns what is around it, or fills
// the page.
func text(s string) string {
	if n := 0; len(s) > longestText {
		for i := range s {
			if n++; n > longestText {
				s = s[:i] + "…"
				break
			}
		}
	}
	return human.Printable(s)
}

var pageFuncs = template.FuncMap{
	"text":  text,
	"look":  func(b band) string { return b.class },
	"size":  human.Bytes,
	"count": human.Grouped,
	"share": share,
	"bar": func(part, whole int64) template.CSS { // length of a row's bar, from 0 to 1 for the longest
		return template.CSS(fmt.Sprintf("--bar:%.3f", float64(part)/float64(max(1, whole))))
	},
}
