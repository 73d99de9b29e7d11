package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/progress"
)

// How often progress is drawn on a terminal and written elsewhere.
const (
	drawEvery = 200 * time.Millisecond
	lineEvery = 10 * time.Second
)

// watch shows progress until stop is called. Stop draws the last state.
func (u *ui) watch(p *progress.Counters) (stop func()) {
	if u.quiet {
		return func() {}
	}
	d, every := drawer{ui: u, p: p}, lineEvery
	if u.terminal() {
		d.bar, every = newBar(u), drawEvery
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		t := time.NewTicker(every)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				d.draw(false)
			case <-done:
				d.draw(true)
				return
			}
		}
	}()
	return func() { close(done); <-ended }
}

// barWidth is the width of the bar itself, in characters.
const barWidth = 16

func newBar(u *ui) *progressbar.ProgressBar {
	return progressbar.NewOptions64(1,
		progressbar.OptionSetWriter(u.err),
		progressbar.OptionSetWidth(barWidth),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetElapsedTime(false),
		progressbar.OptionEnableColorCodes(u.color()),
		progressbar.OptionSetRenderBlankState(true),
		progressbar.OptionThrottle(0),
		progressbar.OptionSetTheme(progressbar.Theme{Saucer: "━", SaucerHead: "╸", SaucerPadding: " ", BarStart: "", BarEnd: ""}),
	)
}

// drawer turns snapshots into the progress line.
type drawer struct {
	ui  *ui
	p   *progress.Counters
	bar *progressbar.ProgressBar // nil: plain lines

	last     progress.Snapshot
	lastTime time.Time
	proved   average // bytes per second
	stages   []pace  // in the order of the snapshots
}

// pace tells how fast a stage is, in bytes per second, and which share of the time it is busy.
type pace struct{ speed, busy average }

// average is a moving average over about five seconds.
type average struct {
	value float64
	begun bool
}

func (a *average) add(x, dt float64) {
	w := min(1, dt/5)
	if !a.begun {
		w, a.begun = 1, true
	}
	a.value += w * (x - a.value)
}

// draw shows one state. The last one of a bar ends its line.
func (d *drawer) draw(last bool) {
	s := d.p.Snapshot()
	d.measure(s)
	if s.SourceBytes == 0 {
		return
	}
	if d.bar == nil {
		if !last || s.Verified > 0 {
			d.line(s)
		}
		return
	}
	d.bar.ChangeMax64(max(s.SourceBytes, 1))
	d.bar.Describe(shorten(d.text(s), d.ui.width()-barWidth-20))
	_ = d.bar.Set64(min(s.Verified, s.SourceBytes)) // a bar that can't be drawn is no reason to stop
	if last {
		fmt.Fprintln(d.ui.err)
	}
}

// line writes one state as a line of its own.
func (d *drawer) line(s progress.Snapshot) {
	if !d.ui.jsonLog() {
		fmt.Fprintln(d.ui.err, d.text(s))
		return
	}
	attrs := []any{
		"phase", s.Phase, "files", s.Outputs, "files_total", s.OutputFiles,
		"bytes", min(s.Verified, s.SourceBytes), "bytes_total", s.SourceBytes, "bytes_per_second", int64(d.proved.value),
	}
	for _, st := range s.Stages {
		attrs = append(attrs, st.Stage+"_bytes", st.Bytes)
	}
	d.ui.log().Info("progress", attrs...)
}

// shorten cuts a text that would not fit into its line.
func shorten(s string, width int) string {
	if r := []rune(s); width > 0 && len(r) > width {
		return string(r[:max(1, width-1)]) + "…"
	}
	return s
}

// measure updates the averages with the progress since the last snapshot.
func (d *drawer) measure(s progress.Snapshot) {
	now := time.Now()
	if d.stages == nil {
		d.stages = make([]pace, len(s.Stages))
	} else if dt := now.Sub(d.lastTime).Seconds(); dt > 0 {
		d.proved.add(float64(s.Verified-d.last.Verified)/dt, dt)
		for i, st := range s.Stages {
			d.stages[i].speed.add(float64(st.Bytes-d.last.Stages[i].Bytes)/dt, dt)
			d.stages[i].busy.add((st.Busy-d.last.Stages[i].Busy).Seconds()/dt, dt)
		}
	}
	d.last, d.lastTime = s, now
}

// text is the line itself: files, bytes, time to go, and what each stage does.
func (d *drawer) text(s progress.Snapshot) string {
	parts := []string{
		fmt.Sprintf("%s %d/%d files", s.Phase, s.Outputs, s.OutputFiles),
		human.Bytes(min(s.Verified, s.SourceBytes)) + " of " + human.Bytes(s.SourceBytes),
	}
	if left := s.SourceBytes - s.Verified; left > 0 && d.proved.value > 0 {
		eta := time.Duration(float64(left) / d.proved.value * float64(time.Second))
		parts = append(parts, "eta "+eta.Round(time.Second).String())
	}
	return strings.Join(append(parts, d.stageTexts(s)...), " · ")
}

// stageTexts gives the rates of fetch, encode and upload, and of the busiest stage, which limits the others.
func (d *drawer) stageTexts(s progress.Snapshot) (texts []string) {
	limit, most := -1, 0.5
	for i, p := range d.stages {
		if p.busy.value > most {
			limit, most = i, p.busy.value
		}
	}
	for i, st := range s.Stages {
		speed := d.stages[i].speed
		if i != limit && (st.Stage == "verify" || st.Stage == "hash") || st.Bytes == 0 || !speed.begun {
			continue
		}
		text := st.Stage + " idle"
		if speed.value >= 1e3 {
			text = st.Stage + " " + human.Bytes(int64(speed.value)) + "/s"
			if i == limit {
				text += " ← limit"
			}
		}
		texts = append(texts, text)
	}
	return texts
}
