package main

import (
	"fmt"
	"runtime"
	"time"

	"github.com/df11-convert/df11-convert/internal/progress"
	"github.com/df11-convert/df11-convert/internal/terminal"
)

// Progress is measured every drawEvery, and drawn then on a terminal. Elsewhere, every lineAfter-th
// state becomes a line.
const (
	drawEvery = 200 * time.Millisecond
	lineAfter = 50
)

// watch shows progress until stop is called, and then the last state. It shows nothing while there
// is nothing to do.
func (u *ui) watch(p *progress.Counters) (stop func()) {
	if u.quiet {
		return func() {}
	}
	show, after := u.writeLine, lineAfter
	if runtime.GOOS != "js" && u.terminal() {
		show, after = u.drawBlock, 1
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		defer u.screen.Release()
		t := time.NewTicker(drawEvery)
		defer t.Stop()
		m := progress.Motion{Counters: p, Began: time.Now()}
		for n := 1; !m.Ended; n++ {
			select {
			case <-t.C:
			case <-done:
				m.Ended = true
			}
			m.Look(time.Now())
			if p.Begun() && p.SourceBytes.Load() > 0 && (m.Ended || n%after == 0) {
				show(&m)
			}
		}
	}()
	return func() { close(done); <-ended }
}

// drawBlock draws the state over the last one, in as many lines as the terminal has.
func (u *ui) drawBlock(m *progress.Motion) {
	width, height := size(u.err)
	lines := terminal.Block(m, width)
	u.screen.Show(lines[:min(len(lines), max(1, height-1))])
}

// writeLine writes the state as a line of its own.
func (u *ui) writeLine(m *progress.Motion) {
	if !u.jsonLog() {
		fmt.Fprintln(u.screen, terminal.Line(m))
		return
	}
	source := m.SourceBytes.Load()
	attrs := []any{
		"phase", m.Phase(), "percent", terminal.Percent(m), "files", m.Outputs.Load(), "files_total",
		m.OutputFiles.Load(), "bytes", min(m.Verified.Load(), source), "bytes_total", source,
		"seconds", int64(m.Elapsed().Seconds()),
	}
	if left := m.Left(); left > 0 {
		attrs = append(attrs, "seconds_left", int64(left.Seconds()))
	}
	u.log().Info("progress", attrs...)
}
