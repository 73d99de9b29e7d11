// Package terminal shows texts and progress to people. It folds lines, escapes control characters,
// and draws in place.
package terminal

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/progress"
)

// A Style is the parameter of the ECMA-48 sequence that sets it.
type Style string

// The colors in use.
const (
	Red    Style = "31"
	Yellow Style = "33"
	Cyan   Style = "36"
)

// A Painter gives a text a style, or leaves it alone.
type Painter func(Style, string) string

// summary returns what matters most: times and files.
func summary(m *progress.Motion) (parts []string) {
	switch left, sure := m.Left(); {
	case sure && left > 0:
		parts = append(parts, Duration(left)+" left")
	case left > 0:
		parts = append(parts, "about "+Duration(left)+" left")
	}
	elapsed := Duration(m.Elapsed())
	if !m.Ended {
		elapsed += " so far"
	}
	return append(parts, elapsed, fmt.Sprintf("%d/%d files", m.Outputs, m.OutputFiles))
}

// amount says how much of the model has passed its first stage.
func amount(m *progress.Motion) string {
	first := m.Work()[0]
	return human.Bytes(first.Done) + " of " + human.Bytes(first.All)
}

// Line describes the state in one line, no matter how long.
func Line(m *progress.Motion) string {
	parts := append([]string{fmt.Sprintf("%s %d%%", m.Phase, Percent(m))}, summary(m)...)
	if limit := m.Bottleneck(); limit != "" {
		parts = append(parts, "bottleneck: "+limit)
	}
	for i, w := range m.Work() {
		if i == 0 {
			parts = append(parts, w.Stage.String()+" "+amount(m))
		}
		if speed := speedOf(m, w); m.Stages[w.Stage].Bytes > 0 && speed != "" && !m.Ended {
			parts = append(parts, w.Stage.String()+" "+speed)
		}
	}
	return strings.Join(parts, " · ")
}

// shareOf returns how much is done. It's below 1 until the end, because an upload's last bytes are
// read before they arrive.
func shareOf(m *progress.Motion) float64 {
	if m.Ended {
		return m.Share
	}
	return min(m.Share, 0.99)
}

// Percent returns how much is done.
func Percent(m *progress.Motion) int { return int(100 * shareOf(m)) }

// speedOf formats the speed of a stage. It returns "" before the speed is known, and when the stage
// has done all its work.
func speedOf(m *progress.Motion, w progress.Work) string {
	switch speed, measured := m.Speed(w.Stage); {
	case !measured || w.Done == w.All:
		return ""
	case speed < 1e3:
		return "idle"
	default:
		return human.Bytes(int64(speed)) + "/s"
	}
}

// Columns of a bar and of the texts next to it: on a terminal with enough space, and on a narrow
// one.
const (
	barColumns  = 36
	textColumns = 60
	shortBar    = 8
	shortText   = 34 // the longest time left fits after any phase
	leastWidth  = 16 // of a terminal
)

// Block returns what a terminal shows: a bar for the whole, and one for each stage while several
// work.
func Block(m *progress.Motion, width int, paint Painter) []string {
	if m.SourceBytes == 0 || m.Ended && !m.Begun() || width < leastWidth {
		return nil
	}
	work, texts, limit := m.Work(), summary(m), m.Bottleneck()
	if len(work) == 1 && !m.Ended {
		texts = append(texts, amount(m), speedOf(m, work[0]))
	}
	var bars []string
	if len(work) > 1 && !m.Ended {
		for i, w := range work {
			name, texts, st := w.Stage.String(), []string{speedOf(m, w)}, Style("")
			if name == limit {
				texts, st, limit = append(texts, "bottleneck"), Yellow, ""
			}
			if i == 0 {
				texts = append(texts, amount(m))
			}
			bars = append(bars, paint(st, row("  "+name, w.Done, w.All, width, texts)))
		}
	}
	if limit != "" { // this stage has no bar
		texts = append(texts, "bottleneck: "+limit)
	}
	const whole = 1_000_000
	return append([]string{row(m.Phase, int64(shareOf(m)*whole), whole, width, texts)}, bars...)
}

// row returns a bar and as many of the texts as fit after it. The bar keeps its width when the
// texts change.
func row(name string, done, all int64, width int, texts []string) string {
	line, between := bar(name, done, all,
		max(0, min(shortBar, width-shortText), min(barColumns, width-textColumns))), " "
	for _, text := range texts {
		if longer := line + between + text; text != "" && Columns(longer) < width {
			line, between = longer, " · "
		}
	}
	return line
}

// bar draws a bar with its percentage. It makes a new bar of the library every time: a lasting bar
// can't fall, change its width, or move past 100%, and its speed would include the work of earlier
// runs. bar never passes an unknown length (-1), for which the library starts a goroutine that
// never ends.
func bar(name string, done, all int64, width int) string {
	b := progressbar.NewOptions64(max(1, all), progressbar.OptionSetWriter(io.Discard),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetDescription(fmt.Sprintf("%-8s", name)),
		progressbar.OptionSetWidth(width),
		progressbar.OptionSetTheme(progressbar.Theme{Saucer: "━", SaucerHead: "╸",
			SaucerPadding: "─"}))
	_ = b.Set64(done)   // draws nothing at 0%
	_ = b.RenderBlank() // draws it as it is
	return strings.TrimRight(strings.TrimPrefix(b.String(), "\r"), " ")
}

// Duration formats a duration with at most two units: 12s, 1m05s, 2h05m, 3d4h.
func Duration(d time.Duration) string {
	s := int64(d.Round(time.Second).Seconds())
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	case s < 48*3600:
		return fmt.Sprintf("%dh%02dm", s/3600, s/60%60)
	}
	return fmt.Sprintf("%dd%dh", s/86400, s/3600%24)
}
