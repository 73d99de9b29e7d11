package inspect

import (
	"fmt"
	"html"
	"html/template"
	"strconv"
	"strings"
)

// chartWidth is the width of every chart, in its own units.
const chartWidth = 920

// svg builds one chart. Colors come from the page's style sheet by class.
type svg struct{ b strings.Builder }

// newSVG starts a chart with a title and a description for readers who do not see it.
func newSVG(id string, height float64, title, desc string) *svg {
	s := &svg{}
	fmt.Fprintf(&s.b, `<svg id="%[1]s" viewBox="0 0 %[2]d %[3]s" role="img" aria-labelledby="%[1]s-t %[1]s-d">`+
		`<title id="%[1]s-t">%[4]s</title><desc id="%[1]s-d">%[5]s</desc>`,
		id, chartWidth, num(height), html.EscapeString(title), html.EscapeString(desc))
	return s
}

// done ends the chart. All text in it was escaped where it was written.
func (s *svg) done() template.HTML {
	s.b.WriteString("</svg>")
	return template.HTML(s.b.String()) //nolint:gosec // see above
}

// num writes a coordinate.
func num(x float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(x, 'f', 1, 64), ".0")
}

// rect draws a box; hint is shown when pointing at it, if it is not empty.
func (s *svg) rect(class string, x, y, w, h float64, hint string) {
	fmt.Fprintf(&s.b, `<rect class="%s" x="%s" y="%s" width="%s" height="%s"`, class, num(x), num(y), num(max(0, w)), num(max(0, h)))
	s.end("rect", hint)
}

func (s *svg) circle(class string, x, y, r float64, hint string) {
	fmt.Fprintf(&s.b, `<circle class="%s" cx="%s" cy="%s" r="%s"`, class, num(x), num(y), num(r))
	s.end("circle", hint)
}

func (s *svg) end(tag, hint string) {
	if hint == "" {
		s.b.WriteString("/>")
		return
	}
	fmt.Fprintf(&s.b, "><title>%s</title></%s>", html.EscapeString(hint), tag)
}

// line draws a line through the points x0, y0, x1, y1, …; a class with a fill fills the area between them.
func (s *svg) line(class string, xy ...float64) {
	var points []string
	for _, v := range xy {
		points = append(points, num(v))
	}
	fmt.Fprintf(&s.b, `<path class="%s" d="M%s"/>`, class, strings.Join(points, " "))
}

// gridLine draws a line across the chart at height y, with its value at the left.
func (s *svg) gridLine(left, y float64, value string) {
	s.line("grid", left, y, chartWidth, y)
	s.text("e small muted", left-8, y+4, value)
}

// text writes a line; class holds its anchor: "s", "m" or "e" for start, middle and end.
func (s *svg) text(class string, x, y float64, text string) {
	fmt.Fprintf(&s.b, `<text class="%s" x="%s" y="%s">%s</text>`, class, num(x), num(y), html.EscapeString(text))
}

// legend explains the dot of what is stored and the mark of the ideal beside it.
func (s *svg) legend(x, y float64, ideal string) {
	s.circle("c-e", x, y-4, 4.5, "")
	s.text("s small muted", x+10, y, "stored")
	s.line("ideal", x+66, y-4, x+80, y-4)
	s.text("s small muted", x+86, y, ideal)
}

// power writes 2 with an exponent.
func (s *svg) power(class string, x, y float64, exponent int) {
	fmt.Fprintf(&s.b, `<text class="%s" x="%s" y="%s">2<tspan class="sup" dy="-5">%s</tspan></text>`, class, num(x), num(y), minus(exponent))
}

// minus writes a number with a real minus sign.
func minus(n int) string { return strings.Replace(strconv.Itoa(n), "-", "−", 1) }

// textWidth estimates the width of small text.
func textWidth(s string) float64 { return 7 * float64(len([]rune(s))) }

// share writes part of whole in percent.
func share(part, whole float64) string {
	if whole == 0 {
		return "–"
	}
	p := 100 * part / whole
	if p > 0 && p < 0.01 {
		return "< 0.01 %"
	}
	if p < 10 {
		return fmt.Sprintf("%.2f %%", p)
	}
	return fmt.Sprintf("%.1f %%", p)
}
