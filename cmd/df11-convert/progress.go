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
		var m motion
		for n := 1; ; n++ {
			select {
			case <-t.C:
				if m.add(p.Snapshot(), time.Now()); n%after == 0 {
					show(&m)
				}
			case <-done:
				m.add(p.Snapshot(), time.Now())
				m.ended = true
				show(&m)
				return
			}
		}
	}()
	return func() { close(done); <-ended }
}

// drawBlock draws the state in place, as many lines as the terminal has room for.
func (u *ui) drawBlock(m *motion) {
	width, height := size(u.err)
	lines := m.lines(width, u.paint)
	u.screen.show(lines[:min(len(lines), max(1, height-1))])
}

// writeLine writes the state as a line of its own.
func (u *ui) writeLine(m *motion) {
	switch {
	case m.now.SourceBytes == 0 || !m.now.Begun():
	case u.jsonLog():
		u.log().Info("progress", m.attrs()...)
	default:
		fmt.Fprintln(u.screen, m.line())
	}
}

// summary is what matters first: time left, files.
func (m *motion) summary() (parts []string) {
	if left := m.left(); left > 0 {
		parts = append(parts, timeText(left)+" left")
	}
	return append(parts, fmt.Sprintf("%d/%d files", m.now.Outputs, m.now.OutputFiles))
}

// line is the state in one line of any width.
func (m *motion) line() string {
	parts := append([]string{fmt.Sprintf("%s %d%%", m.now.Phase, m.percent())}, m.summary()...)
	if limit := m.bottleneck(); limit != "" {
		parts = append(parts, "bottleneck: "+limit)
	}
	parts = append(parts, human.Bytes(min(m.now.Verified, m.now.SourceBytes))+" of "+human.Bytes(m.now.SourceBytes)+" verified")
	for i, st := range m.now.Stages {
		if speed := m.stages[i].text(); st.Bytes > 0 && speed != "" && !m.ended {
			parts = append(parts, st.Stage+" "+speed)
		}
	}
	return strings.Join(parts, " · ")
}

// attrs is the state for the JSON log.
func (m *motion) attrs() []any {
	attrs := []any{
		"phase", m.now.Phase, "percent", m.percent(), "files", m.now.Outputs, "files_total", m.now.OutputFiles,
		"bytes", min(m.now.Verified, m.now.SourceBytes), "bytes_total", m.now.SourceBytes,
	}
	if left := m.left(); left > 0 {
		attrs = append(attrs, "seconds_left", int64(left.Seconds()))
	}
	if limit := m.bottleneck(); limit != "" {
		attrs = append(attrs, "bottleneck", limit)
	}
	for i, st := range m.now.Stages {
		attrs = append(attrs, st.Stage+"_bytes", st.Bytes, st.Stage+"_bytes_per_second", int64(m.stages[i].speed.value))
	}
	return attrs
}

// Columns of a line of the block: of a bar, where there is room, and at least of the texts around it.
const (
	barColumns  = 36
	textColumns = 28
	leastWidth  = 16 // of a terminal
)

// lines are the block on a terminal: a bar for the whole, and one for each stage while several work.
func (m *motion) lines(width int, paint painter) []string {
	if m.now.SourceBytes == 0 || m.ended && !m.now.Begun() || width < leastWidth {
		return nil
	}
	const whole = 1_000_000
	work, texts := m.now.Work(), m.summary()
	single := len(work) == 1
	if single && !m.ended {
		texts = append(texts, m.stages[work[0].Stage].text())
	}
	lines := []string{row(m.now.Phase, int64(m.share*whole), whole, width, texts)}
	if single || m.ended {
		return lines
	}
	for _, w := range work {
		name, texts := w.Stage.String(), []string{m.stages[w.Stage].text()}
		limits := name == m.bottleneck()
		if limits {
			texts = append(texts, "bottleneck")
		}
		line := row("  "+name, w.Done, w.All, width, texts)
		if limits {
			line = paint(yellow, line)
		}
		lines = append(lines, line)
	}
	return lines
}

// row is a bar with as many of the texts as fit behind it. The bar keeps its width while the texts change.
func row(name string, done, all int64, width int, texts []string) string {
	line, between := bar(name, done, all, max(0, min(barColumns, width-textColumns))), " "
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
