// Package terminal shows texts and progress to people. It folds lines, escapes control characters,
// and draws in place.
package terminal

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/df11-convert/df11-convert/internal/human"
)

// A Style is the parameter of the ECMA-48 sequence that sets it.
type Style string

// The colors in use.
const (
	Red  Style = "31"
	Cyan Style = "36"
)

// A State is how far a run has come.
type State struct {
	Phase         string
	Share         float64       // of all work, 0 to 1
	Ended, Failed bool          // nothing more will be done, because of an error if Failed
	Elapsed, Left time.Duration // Left is 0 if it isn't known
	// Files are finished, and Published of them in the repo. With an upload, only these count.
	Files, Published int64
	FilesTotal       int64
	Stages           []Stage // those that work at once
}

// A Stage is how many bytes a stage of a run has to process, and how many it has processed.
type Stage struct {
	Name      string
	Done, All int64
}

// past says in one word what a stage has done with its bytes.
var past = map[string]string{"read": "read", "encode": "encoded", "verify": "verified"}

// summary returns what matters most: times, files, and how much of the model has passed its first
// stage.
func summary(m State) (parts []string) {
	elapsed, first := Duration(m.Elapsed), m.Stages[0]
	if left := m.Left; left >= time.Second && !m.Ended {
		parts = append(parts, "about "+Duration(left)+" left")
	}
	switch {
	case !m.Ended:
		elapsed += " so far"
	case m.Failed:
		elapsed = "stopped after " + elapsed
	}
	files := fmt.Sprintf("%d/%d files", m.Files, m.FilesTotal)
	if slices.ContainsFunc(m.Stages, func(s Stage) bool { return s.Name == "upload" }) {
		files = fmt.Sprintf("%d/%d published", m.Published, m.FilesTotal)
	}
	return append(parts, elapsed, files, fmt.Sprintf("%s of %s %s", human.Bytes(first.Done),
		human.Bytes(first.All), past[first.Name]))
}

// Line describes the state in one line, no matter how long.
func Line(m State) string {
	return fmt.Sprintf("%s %d%% · %s", m.Phase, Percent(m), strings.Join(summary(m), " · "))
}

// Percent returns how much is done. It's below 100 until all went well, because an upload's last bytes
// are read before they arrive, and a commit follows them.
func Percent(m State) int {
	if m.Ended && !m.Failed {
		return int(100 * m.Share)
	}
	return min(int(100*m.Share), 99)
}

// Columns of a bar and of the texts next to it, on a terminal with enough space.
const (
	barColumns  = 36
	textColumns = 60
)

// Block returns what a terminal shows: a bar for the whole, and one for each stage while several
// work.
func Block(m State, width int) []string {
	line, between := bar(m.Phase, int64(Percent(m)), 100, width), " "
	for _, text := range summary(m) {
		if longer := line + between + text; Columns(longer) < width {
			line, between = longer, " · "
		}
	}
	lines := []string{line}
	if work := m.Stages; len(work) > 1 && !m.Ended {
		for _, w := range work {
			lines = append(lines, bar("  "+w.Name, w.Done, w.All, width))
		}
	}
	return lines
}

// bar draws a bar with its percentage, and leaves columns for texts. It makes a new bar of the
// library every time: a lasting bar can't fall, change its width, or move past 100%. The width is ours,
// too: the library's would fill whole lines, and texts stand next to our bars. bar never passes an
// unknown length (-1), for which the library starts a goroutine that never ends.
func bar(name string, done, all int64, width int) string {
	b := progressbar.NewOptions64(max(1, all), progressbar.OptionSetWriter(io.Discard),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetDescription(fmt.Sprintf("%-8s", name)),
		progressbar.OptionSetWidth(max(0, min(barColumns, width-textColumns))),
		progressbar.OptionSetTheme(progressbar.Theme{Saucer: "━", SaucerHead: "╸",
			SaucerPadding: "─"}))
	_ = b.Set64(done)   // draws nothing at 0%
	_ = b.RenderBlank() // draws it as it is
	return strings.TrimRight(strings.TrimPrefix(b.String(), "\r"), " ")
}

// Duration formats a duration with at most two units: 12s, 1m05s, 76h05m.
func Duration(d time.Duration) string {
	s := int64(d.Round(time.Second).Seconds())
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	}
	return fmt.Sprintf("%dh%02dm", s/3600, s/60%60)
}
