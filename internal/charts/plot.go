package charts

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"strconv"
	"strings"
)

// plot builds one chart: shapes that stretch to any width, with marks and words over them that do not. Across it has one
// place for each slot; its height goes from 0 at the top to 100. Colors come from the page's style sheet by class.
type plot struct {
	slots         int
	shapes, words strings.Builder
}

// done ends a chart that is so many pixels high. axis names the slots for the page's script, text describes the chart for
// readers who do not see it. All text in it was escaped where it was written.
func (p *plot) done(height int, axis, text string) template.HTML {
	return template.HTML(fmt.Sprintf( //nolint:gosec // see above
		`<div class="plot" data-x="%s" data-slots="%d" style="height:%dpx" role="img" tabindex="0" aria-label="%s">`+
			`<svg viewBox="0 0 %d 100" preserveAspectRatio="none" aria-hidden="true">%s</svg>%s</div>`,
		axis, p.slots, height, html.EscapeString(text), p.slots, p.shapes.String(), p.words.String()))
}

// path draws a path of absolute commands.
func (p *plot) path(class, d string) { fmt.Fprintf(&p.shapes, `<path class="%s" d="%s"/>`, class, d) }

// box is the path of a rectangle.
func box(x, y, w, h float64) string {
	return fmt.Sprintf("M%s %sh%sv%sh-%sz", num(x), num(y), num(w), num(h), num(w))
}

// dash is the path of a horizontal line around x.
func dash(x, half, y float64) string {
	return fmt.Sprintf("M%s %sh%s", num(x-half), num(y), num(2*half))
}

// dot is the path of a line without length, which round ends make a dot.
func dot(x, y float64) string { return fmt.Sprintf("M%s %sh0", num(x), num(y)) }

// level draws a line across the chart with its value at the left.
func (p *plot) level(y float64, value string) {
	p.path("grid", fmt.Sprintf("M0 %sH%d", num(y), p.slots))
	fmt.Fprintf(&p.words, `<span class="y" style="top:%s%%">%s</span>`, num(y), html.EscapeString(value))
}

// num writes a coordinate.
func num(x float64) string {
	return strings.TrimRight(strings.TrimRight(strconv.FormatFloat(x, 'f', 2, 64), "0"), ".")
}

// minus writes a number with a real minus sign.
func minus(n int) string { return strings.Replace(strconv.Itoa(n), "-", "−", 1) }

// power writes a power of 2.
func power(exponent int) string { return "2" + superscript.Replace(strconv.Itoa(exponent)) }

var superscript = strings.NewReplacer("-", "⁻", "0", "⁰", "1", "¹", "2", "²", "3", "³", "4", "⁴", "5", "⁵", "6", "⁶", "7", "⁷", "8", "⁸", "9", "⁹")

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

// levels are the multiples of a step from low to high. The step is the first of steps that gives three or more, or the last
// one.
func levels(low, high float64, steps ...float64) (list []float64) {
	step := steps[len(steps)-1]
	for _, s := range steps {
		if (high-low)/s >= 3 {
			step = s
			break
		}
	}
	for i := int(math.Ceil(low/step - 1e-9)); float64(i)*step <= high+1e-9; i++ { // an int, since Ceil gives -0 for 0
		list = append(list, float64(i)*step)
	}
	return list
}
