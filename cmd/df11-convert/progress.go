package main

import (
	"fmt"
	"runtime"
	"slices"

	"github.com/df11-convert/df11-convert/internal/terminal"
	"github.com/df11-convert/df11-convert/pipeline"
)

// lineAfter is how many states of the progress become one line, unless a terminal draws each.
const lineAfter = 50

// progress returns a function that counts and shows the progress of one call.
func (u *ui) progress() func(pipeline.Progress) {
	show, after, n := u.writeLine, lineAfter, 0
	if runtime.GOOS != "js" && u.terminal() {
		show, after = u.drawBlock, 1
	}
	return func(p pipeline.Progress) {
		if n++; !u.quiet && p.Begun && (p.Ended || n%after == 0) {
			show(p)
		}
		if p.Ended {
			u.count(p)
			u.screen.Release()
		}
	}
}

// count adds the bytes that a call moved, and notes the files that it finished.
func (u *ui) count(p pipeline.Progress) {
	uploads := slices.ContainsFunc(p.Stages,
		func(s pipeline.StageProgress) bool { return s.Stage == "upload" })
	u.now = work{u.now.model, p.Files, p.FilesPublished, p.FilesTotal, u.now.uploads || uploads}
	u.read += p.Read
	u.published += p.Published
}

// state returns the progress as terminals show it.
func state(p pipeline.Progress) terminal.State {
	s := terminal.State{Phase: p.Phase, Share: p.Share, Ended: p.Ended, Failed: p.Failed,
		Elapsed: p.Elapsed, Left: p.Left, Files: p.Files, Published: p.FilesPublished,
		FilesTotal: p.FilesTotal}
	for _, w := range p.Stages {
		s.Stages = append(s.Stages, terminal.Stage{Name: w.Stage, Done: w.Done, All: w.Total})
	}
	return s
}

// drawBlock draws the state over the last one, in as many lines as the terminal has.
func (u *ui) drawBlock(p pipeline.Progress) {
	width, height := size(u.err)
	lines := terminal.Block(state(p), width)
	u.screen.Show(lines[:min(len(lines), max(1, height-1))])
}

// writeLine writes the state as a line of its own.
func (u *ui) writeLine(p pipeline.Progress) {
	if !u.jsonLog() {
		fmt.Fprintln(u.screen, terminal.Line(state(p)))
		return
	}
	attrs := []any{
		"phase", p.Phase, "percent", terminal.Percent(state(p)), "files", p.Files, "files_total",
		p.FilesTotal, "bytes", p.Bytes, "bytes_total", p.BytesTotal,
		"seconds", int64(p.Elapsed.Seconds()),
	}
	if p.Left > 0 {
		attrs = append(attrs, "seconds_left", int64(p.Left.Seconds()))
	}
	u.log().Info("progress", attrs...)
}
