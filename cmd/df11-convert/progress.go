package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/df11-convert/df11-convert/pipeline"
)

// How often progress is drawn on a terminal and written elsewhere.
const (
	drawEvery = 200 * time.Millisecond
	lineEvery = 10 * time.Second
)

// watch shows progress until the function it returns is called, which draws the last state.
func (u *ui) watch(p *pipeline.Progress) (stop func()) {
	if u.quiet {
		return func() {}
	}
	d := drawer{ui: u, p: p, start: time.Now()}
	every := lineEvery
	if u.terminal() {
		every = drawEvery
		d.bar = newBar(u)
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

func newBar(u *ui) *progressbar.ProgressBar {
	return progressbar.NewOptions64(1,
		progressbar.OptionSetWriter(u.err),
		progressbar.OptionSetWidth(24),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetElapsedTime(false),
		progressbar.OptionEnableColorCodes(u.colour()),
		progressbar.OptionSetRenderBlankState(true),
		progressbar.OptionThrottle(0),
		progressbar.OptionSetTheme(progressbar.Theme{Saucer: "━", SaucerHead: "╸", SaucerPadding: " ", BarStart: "", BarEnd: ""}),
	)
}

// drawer turns snapshots into the progress line.
type drawer struct {
	ui    *ui
	p     *pipeline.Progress
	bar   *progressbar.ProgressBar // nil: plain lines
	start time.Time

	last     pipeline.Snapshot
	lastTime time.Time
	rate     float64 // of fetched bytes, smoothed
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
			fmt.Fprintln(d.ui.err, d.text(s))
		}
		return
	}
	d.bar.ChangeMax64(max(s.SourceBytes, 1))
	d.bar.Describe(d.text(s))
	_ = d.bar.Set64(min(s.Verified, s.SourceBytes)) // a bar that can't be drawn is no reason to stop
	if last {
		fmt.Fprintln(d.ui.err)
	}
}

// measure follows the fetch rate with a weight that forgets within about five seconds.
func (d *drawer) measure(s pipeline.Snapshot) {
	now := time.Now()
	if !d.lastTime.IsZero() && now.After(d.lastTime) {
		dt := now.Sub(d.lastTime).Seconds()
		r := float64(s.Verified-d.last.Verified) / dt
		w := min(1, dt/5)
		if d.rate == 0 {
			w = 1
		}
		d.rate += w * (r - d.rate)
	}
	d.last, d.lastTime = s, now
}

// text is the line itself: files, bytes, rate, time to go.
func (d *drawer) text(s pipeline.Snapshot) string {
	parts := []string{
		fmt.Sprintf("%s %d/%d files", s.Phase, s.Outputs, s.OutputFiles),
		bytesText(min(s.Verified, s.SourceBytes)) + " of " + bytesText(s.SourceBytes),
	}
	if d.rate > 0 {
		parts = append(parts, bytesText(int64(d.rate))+"/s")
		if left := s.SourceBytes - s.Verified; left > 0 {
			eta := time.Duration(float64(left) / d.rate * float64(time.Second))
			parts = append(parts, "eta "+eta.Round(time.Second).String())
		}
	}
	return strings.Join(parts, " · ")
}
