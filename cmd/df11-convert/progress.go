package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/progress"
)

// How often progress is measured, and drawn on a terminal; elsewhere it is written after so many of these times.
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
				if s := m.at(p.Snapshot(), time.Now()); n%after == 0 {
					show(s)
				}
			case <-done:
				last := m.at(p.Snapshot(), time.Now())
				last.limits, last.left, last.ended = -1, 0, true
				show(last)
				return
			}
		}
	}()
	return func() { close(done); <-ended }
}

// drawBlock draws the state in place, as many lines as the terminal has room for.
func (u *ui) drawBlock(s state) {
	width, height := size(u.err)
	lines := s.lines(width, u.paint)
	u.screen.show(lines[:min(len(lines), max(1, height-1))])
}

// writeLine writes the state as a line of its own.
func (u *ui) writeLine(s state) {
	switch {
	case s.SourceBytes == 0 || !s.Begun():
	case u.jsonLog():
		u.log().Info("progress", s.attrs()...)
	default:
		fmt.Fprintln(u.screen, s.line())
	}
}

// motion tells from one snapshot to the next how fast things move.
type motion struct {
	before   progress.Snapshot
	beforeAt time.Time
	share    float64 // of the whole work; it never falls
	flows    []flow  // in the order of the snapshots' work
	stages   []pace  // in the order of the snapshots' stages
}

// flow tells how fast a stage gets its work done, from the first time that it did something: the last stages begin later.
type flow struct {
	speed average // bytes per second, up to the last time that something was done
	age   float64 // seconds of that
	idle  float64 // seconds since then
	begun bool
}

// add takes what was done in the last dt seconds. Large modules reach the last stages in bursts, so the time before a burst
// belongs to it. The average is over most of the time, so that it gets steadier the longer that is, and forgets a slow line.
func (f *flow) add(bytes, dt float64) {
	f.idle += dt
	if bytes == 0 {
		return
	}
	if f.begun {
		f.age += f.idle
		f.speed.add(bytes/f.idle, f.idle, max(flowWindow, f.age*3/4))
	}
	f.begun, f.idle = true, 0
}

// known reports whether the speed was measured for long enough, and still holds as far as anybody can tell.
func (f *flow) known() bool { return f.age >= flowLeast && f.idle <= f.age }

// pace tells how fast a stage is, in bytes per second, and which share of the time it is busy.
type pace struct{ speed, busy average }

// average is a moving average: over all of the time at first, then over the last seconds, as many as its window has.
type average struct{ value, seconds float64 }

func (a *average) add(x, dt, window float64) {
	a.seconds = min(a.seconds+dt, max(window, dt))
	a.value += dt / a.seconds * (x - a.value)
}

// Seconds over which speeds are averaged: those of stages are shown, those of flows give the time that is left, and not before
// they were measured for long enough.
const (
	stageWindow = 5
	flowWindow  = 30
	flowLeast   = 10
	leftMost    = 100 * 86400 // what is slower than that stands still
)

// state is what is shown of one moment.
type state struct {
	progress.Snapshot
	share  float64       // of the work that is done, 0 to 1
	left   time.Duration // 0: unknown, or none
	limits int           // the stage that the others wait for; -1 for none
	stages []pace
	ended  bool // the stages have stopped
}

// at takes the next snapshot.
func (m *motion) at(s progress.Snapshot, now time.Time) state {
	share := s.Share()
	work := s.Work()
	if len(m.flows) != len(work) || s.SourceBytes != m.before.SourceBytes || s.Verified < m.before.Verified { // it begins, or begins anew
		*m = motion{share: share, flows: make([]flow, len(work)), stages: make([]pace, len(s.Stages))}
	} else if dt := now.Sub(m.beforeAt).Seconds(); dt > 0 {
		m.share = max(m.share, share)
		before := m.before.Work()
		for i, w := range work {
			m.flows[i].add(float64(max(0, w.Done-before[i].Done)), dt)
		}
		for i, st := range s.Stages {
			m.stages[i].speed.add(float64(st.Bytes-m.before.Stages[i].Bytes)/dt, dt, stageWindow)
			m.stages[i].busy.add((st.Busy-m.before.Stages[i].Busy).Seconds()/dt, dt, stageWindow)
		}
	}
	m.before, m.beforeAt = s, now
	st := state{Snapshot: s, share: m.share, left: m.left(work), limits: -1, stages: m.stages}
	most := 0.5 // a stage that is idle half of the time keeps nobody waiting
	for i, p := range m.stages {
		if p.busy.value > most {
			st.limits, most = i, p.busy.value
		}
	}
	return st
}

// left is the time that the slowest stage needs for what is left to it, since all of them work at once. It is 0 as long as
// nobody can tell: until something has passed every stage, and some time after that.
func (m *motion) left(work []progress.Work) time.Duration {
	var most float64
	for i, w := range work {
		if w.Done == w.All {
			continue
		}
		if !m.flows[i].known() {
			return 0
		}
		most = max(most, float64(w.All-w.Done)/m.flows[i].speed.value)
	}
	if most > leftMost {
		return 0
	}
	return time.Duration(most * float64(time.Second))
}

// summary is what matters first: time left, what limits the speed, files.
func (s *state) summary() []string {
	var parts []string
	if s.left > 0 {
		parts = append(parts, timeText(s.left)+" left")
	}
	if s.limits >= 0 {
		parts = append(parts, "bottleneck: "+s.Stages[s.limits].Stage)
	}
	return append(parts, fmt.Sprintf("%d/%d files", s.Outputs, s.OutputFiles))
}

// shows reports whether a stage has begun, not ended, and been seen for long enough to tell how fast it is.
func (s *state) shows(i int) bool {
	return s.Stages[i].Bytes > 0 && !s.ended && s.stages[i].speed.seconds > 0
}

// line is the state in one line of any width.
func (s *state) line() string {
	parts := append([]string{fmt.Sprintf("%s %d%%", s.Phase, s.percent())}, s.summary()...)
	parts = append(parts, human.Bytes(min(s.Verified, s.SourceBytes))+" of "+human.Bytes(s.SourceBytes)+" verified")
	for i, st := range s.Stages {
		if s.shows(i) {
			parts = append(parts, st.Stage+" "+rate(s.stages[i]))
		}
	}
	return strings.Join(parts, " · ")
}

// attrs is the state for the JSON log.
func (s *state) attrs() []any {
	attrs := []any{
		"phase", s.Phase, "percent", s.percent(), "files", s.Outputs, "files_total", s.OutputFiles,
		"bytes", min(s.Verified, s.SourceBytes), "bytes_total", s.SourceBytes,
	}
	if s.left > 0 {
		attrs = append(attrs, "seconds_left", int64(s.left.Seconds()))
	}
	if s.limits >= 0 {
		attrs = append(attrs, "bottleneck", s.Stages[s.limits].Stage)
	}
	for i, st := range s.Stages {
		attrs = append(attrs, st.Stage+"_bytes", st.Bytes, st.Stage+"_bytes_per_second", int64(s.stages[i].speed.value))
	}
	return attrs
}

// percent is below 100 until everything is done.
func (s *state) percent() int { return int(100 * s.share) }

// The bar has the same width all the time, so that it does not tremble with the text behind it.
const (
	maxBar  = 40
	minBar  = 6
	barText = 54 // columns for percent and summary
)

// lines are the block on a terminal: the whole, then each stage that has begun. A narrow terminal gets the whole alone.
func (s *state) lines(width int, paint painter) []string {
	if s.SourceBytes == 0 || s.ended && !s.Begun() {
		return nil
	}
	text := strings.Join(s.summary(), " · ")
	if width < barText+minBar {
		return []string{s.brief(width - 1)}
	}
	lines := []string{bar(s, min(maxBar, width-barText)) + " " + text}
	for i, st := range s.Stages {
		if !s.shows(i) {
			continue
		}
		line := fmt.Sprintf("  %-7s %8s  %s", st.Stage, human.Bytes(st.Bytes), rate(s.stages[i]))
		if i == s.limits {
			line = paint(yellow, line+"  ← bottleneck")
		}
		lines = append(lines, line)
	}
	return lines
}

// brief is the percentage and as much of the summary as fits.
func (s *state) brief(width int) string {
	text := fmt.Sprintf("%d%%", s.percent())
	for _, part := range s.summary() {
		if columns(text+" · "+part) > width {
			break
		}
		text += " · " + part
	}
	return text
}

// bar is the percentage with the bar.
func bar(s *state, width int) string {
	n := int(s.share * float64(width))
	drawn := strings.Repeat("━", n)
	if 0 < n && n < width {
		drawn = strings.Repeat("━", n-1) + "╸"
	}
	return fmt.Sprintf("%3d%% %s%s", s.percent(), drawn, strings.Repeat("─", width-n))
}

// rate is the speed of a stage.
func rate(p pace) string {
	if p.speed.value < 1e3 {
		return "idle"
	}
	return human.Bytes(int64(p.speed.value)) + "/s"
}
