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
type svg struct {
	b      strings.Builder
	height float64
}

// newSVG starts a chart with a title and a description for readers who do not see it.
func newSVG(id string, height float64, title, desc string) *svg {
	s := &svg{height: height}
	fmt.Fprintf(&s.b, `<svg id="%s" viewBox="0 0 %d %s" role="img" aria-labelledby="%s-t %s-d"><title id="%s-t">%s</title><desc id="%s-d">%s</desc>`,
		id, chartWidth, num(height), id, id, id, html.EscapeString(title), id, html.EscapeString(desc))
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

func (s *svg) line(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(&s.b, `<path class="%s" d="M%s %sL%s %s"/>`, class, num(x1), num(y1), num(x2), num(y2))
}

// gridLine draws a line across the chart at height y, with its value at the left.
func (s *svg) gridLine(left, y float64, value string) {
	s.line("grid", left, y, chartWidth, y)
	s.text("e small muted", left-8, y+4, value)
}

// polygon fills the area between the points x0, y0, x1, y1, …
func (s *svg) polygon(class string, xy ...float64) {
	fmt.Fprintf(&s.b, `<polygon class="%s" points="`, class)
	for i, v := range xy {
		if i > 0 {
			s.b.WriteByte(' ')
		}
		s.b.WriteString(num(v))
	}
	s.b.WriteString(`"/>`)
}

// text writes a line; class holds its anchor: "s", "m" or "e" for start, middle and end.
func (s *svg) text(class string, x, y float64, text string) {
	fmt.Fprintf(&s.b, `<text class="%s" x="%s" y="%s">%s</text>`, class, num(x), num(y), html.EscapeString(text))
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
	return fmt.Sprintf("%.*f %%", map[bool]int{true: 2, false: 1}[p < 10], p)
}

// grouped writes 1 234 567 with thin spaces.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}
