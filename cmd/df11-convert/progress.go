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

// watch shows progress until stop is called. It begins with the line about, unless that's empty or
// there is no work to do. stop shows the last state.
func (u *ui) watch(p *progress.Counters, about string) (stop func()) {
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
		m := progress.Motion{Began: u.began}
		add := func() {
			m.Add(p.Snapshot(), time.Now())
			if about != "" && m.Phase != "" {
				u.say("%s", about)
				about = ""
			}
		}
		for n := 1; ; n++ {
			select {
			case <-t.C:
				if add(); n%after == 0 {
					show(&m)
				}
			case <-done:
				add()
				m.Ended = true
				show(&m)
				return
			}
		}
	}()
	return func() { close(done); <-ended }
}

// drawBlock draws the state over the last one, in as many lines as the terminal has.
func (u *ui) drawBlock(m *progress.Motion) {
	width, height := size(u.err)
	lines := terminal.Block(m, width, u.paint)
	u.screen.Show(lines[:min(len(lines), max(1, height-1))])
}

// writeLine writes the state as a line of its own.
func (u *ui) writeLine(m *progress.Motion) {
	switch {
	case m.SourceBytes == 0 || !m.Begun():
	case u.jsonLog():
		u.log().Info("progress", attrsOf(m)...)
	default:
		fmt.Fprintln(u.screen, terminal.Line(m))
	}
}

// attrsOf returns the state for the JSON log.
func attrsOf(m *progress.Motion) []any {
	attrs := []any{
		"phase", m.Phase, "percent", terminal.Percent(m), "files", m.Outputs, "files_total",
		m.OutputFiles,
		"bytes", min(m.Verified, m.SourceBytes), "bytes_total", m.SourceBytes, "seconds",
		int64(m.Elapsed().Seconds()),
	}
	if left, _ := m.Left(); left > 0 {
		attrs = append(attrs, "seconds_left", int64(left.Seconds()))
	}
	if limit := m.Bottleneck(); limit != "" {
		attrs = append(attrs, "bottleneck", limit)
	}
	for i, st := range m.Stages {
		speed, _ := m.Speed(progress.Stage(i))
		attrs = append(attrs, st.Stage+"_bytes", st.Bytes, st.Stage+"_bytes_per_second",
			int64(speed))
	}
	return attrs
}
