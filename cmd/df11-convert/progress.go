package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/progress"
)

// How often progress is measured, and drawn on a terminal; elsewhere every lineAfter-th state is written as a line.
const (
	drawEvery = 200 * time.Millisecond
	lineAfter = 50
)

// watch shows progress until stop is called. Stop shows the last state, or nothing if nothing was to be done.
func (u *ui) watch(p *progress.Counters) (stop func()) {
	if u.quiet {
		return func() {}
	}
	show, after := u.writeLine, lineAfter
	if u.terminal() {
		show, after = u.drawBlock, 1
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		defer u.screen.release()
		t := time.NewTicker(drawEvery)
		defer t.Stop()
		m := progress.Motion{Began: u.began}
		for n := 1; ; n++ {
			select {
			case <-t.C:
				if m.Add(p.Snapshot(), time.Now()); n%after == 0 {
					show(&m)
				}
			case <-done:
				m.Add(p.Snapshot(), time.Now())
				m.Ended = true
				show(&m)
				return
			}
		}
	}()
	return func() { close(done); <-ended }
}

// drawBlock draws the state in place, as many lines as the terminal has room for.
func (u *ui) drawBlock(m *progress.Motion) {
	width, height := size(u.err)
	lines := block(m, width, u.paint)
	u.screen.show(lines[:min(len(lines), max(1, height-1))])
}

// writeLine writes the state as a line of its own.
func (u *ui) writeLine(m *progress.Motion) {
	switch {
	case m.SourceBytes == 0 || !m.Begun():
	case u.jsonLog():
		u.log().Info("progress", attrsOf(m)...)
	default:
		fmt.Fprintln(u.screen, lineOf(m))
	}
}

// summary is what matters first: times, files.
func summary(m *progress.Motion) (parts []string) {
	if left, sure := m.Left(); left > 0 {
		parts = append(parts, choose(sure, "", "about ")+timeText(left)+" left")
	}
	return append(parts, timeText(m.Elapsed())+choose(m.Ended, "", " so far"), fmt.Sprintf("%d/%d files", m.Outputs, m.OutputFiles))
}

// amount is how much of the model has passed its first stage.
func amount(m *progress.Motion) string {
	first := m.Work()[0]
	return human.Bytes(first.Done) + " of " + human.Bytes(first.All)
}

// lineOf is the state in one line of any width.
func lineOf(m *progress.Motion) string {
	parts := append([]string{fmt.Sprintf("%s %d%%", m.Phase, donePercent(m))}, summary(m)...)
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

// attrsOf is the state for the JSON log.
func attrsOf(m *progress.Motion) []any {
	attrs := []any{
		"phase", m.Phase, "percent", donePercent(m), "files", m.Outputs, "files_total", m.OutputFiles,
		"bytes", min(m.Verified, m.SourceBytes), "bytes_total", m.SourceBytes, "seconds", int64(m.Elapsed().Seconds()),
	}
	if left, _ := m.Left(); left > 0 {
		attrs = append(attrs, "seconds_left", int64(left.Seconds()))
	}
	if limit := m.Bottleneck(); limit != "" {
		attrs = append(attrs, "bottleneck", limit)
	}
	for i, st := range m.Stages {
		speed, _ := m.Speed(progress.Stage(i))
		attrs = append(attrs, st.Stage+"_bytes", st.Bytes, st.Stage+"_bytes_per_second", int64(speed))
	}
	return attrs
}

// shareOf is how much is done. While anything goes on it is below 1: the last bytes of an upload are read before they have arrived.
func shareOf(m *progress.Motion) float64 { return min(m.Share, choose(m.Ended, 1, 0.99)) }

func donePercent(m *progress.Motion) int { return int(100 * shareOf(m)) }

// speedOf is the speed of a stage for people, "" before it was measured and when the stage has done its work.
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

// Columns of a line of the block: of a bar and of all texts around it where there is room, and of both on a narrow terminal.
const (
	barColumns  = 36
	textColumns = 60
	shortBar    = 8
	shortText   = 32
	leastWidth  = 16 // of a terminal
)

// block is what a terminal shows: a bar for the whole, and one for each stage while several work.
func block(m *progress.Motion, width int, paint painter) []string {
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
			name, texts, st := w.Stage.String(), []string{speedOf(m, w)}, style("")
			if name == limit {
				texts, st, limit = append(texts, "bottleneck"), yellow, ""
			}
			if i == 0 {
				texts = append(texts, amount(m))
			}
			bars = append(bars, paint(st, row("  "+name, w.Done, w.All, width, texts)))
		}
	}
	if limit != "" { // a stage that has no bar
		texts = append(texts, "bottleneck: "+limit)
	}
	const whole = 1_000_000
	return append([]string{row(m.Phase, int64(shareOf(m)*whole), whole, width, texts)}, bars...)
}

// row is a bar with as many of the texts as fit behind it. The bar keeps its width while the texts change.
func row(name string, done, all int64, width int, texts []string) string {
	line, between := bar(name, done, all, max(0, min(shortBar, width-shortText), min(barColumns, width-textColumns))), " "
	for _, text := range texts {
		if longer := line + between + text; text != "" && columns(longer) < width {
			line, between = longer, " · "
		}
	}
	return line
}

// bar draws a bar with its percentage. Each drawing is a new bar of the library: one that lives on cannot fall, get another
// width, or move after 100 %, and takes what earlier runs have done for its speed. No bar has an unknown length (-1), for which
// the library starts a goroutine that nothing ends.
func bar(name string, done, all int64, width int) string {
	b := progressbar.NewOptions64(max(1, all), progressbar.OptionSetWriter(io.Discard), progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetDescription(fmt.Sprintf("%-8s", name)), progressbar.OptionSetWidth(width),
		progressbar.OptionSetTheme(progressbar.Theme{Saucer: "━", SaucerHead: "╸", SaucerPadding: "─"}))
	_ = b.Set64(done)   // draws nothing at 0 %
	_ = b.RenderBlank() // draws it as it stands
	return strings.TrimRight(strings.TrimPrefix(b.String(), "\r"), " ")
}
