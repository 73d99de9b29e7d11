package main

import (
	"strings"
	"testing"
	"time"

	"github.com/df11-convert/df11-convert/internal/progress"
	"github.com/df11-convert/df11-convert/internal/terminal"
	"github.com/df11-convert/df11-convert/pipeline"
)

// midway returns a conversion of 16 GB with --push, ten seconds after its first bytes have passed
// all stages.
func midway() pipeline.Progress {
	var p progress.Counters
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	m := progress.Motion{Counters: &p, Began: now}
	p.SetPhase("convert")
	p.SourceBytes.Store(16_060_000_000)
	p.OutputBytes.Store(16_060_000_000 * 7 / 10)
	p.OutputFiles.Store(36)
	p.Expect(progress.Read, progress.Encode, progress.Verify, progress.Upload)
	m.Look(now)
	for _, n := range []interface{ Store(int64) }{&p.Fetched, &p.Encoded, &p.Verified, &p.Uploaded} {
		n.Store(1)
	}
	m.Look(now.Add(time.Second))
	p.Outputs.Store(6)
	p.Fetched.Store(8_200_000_000)
	p.Encoded.Store(4_400_000_000)
	p.Verified.Store(4_100_000_000)
	p.Uploaded.Store(1_900_000_000)
	m.Look(now.Add(11 * time.Second))
	made := pipeline.Progress{Phase: m.Phase(), Share: m.Share, Begun: true, Elapsed: m.Elapsed(), Left: m.Left(),
		Files: m.Outputs.Load(), FilesPublished: 4, FilesTotal: m.OutputFiles.Load()}
	for _, w := range m.Work {
		made.Stages = append(made.Stages, pipeline.StageProgress{Stage: w.Stage.String(), Done: w.Done, Total: w.All})
	}
	return made
}

// TestProgressFits checks that no line is wider than the terminal, at any width.
func TestProgressFits(t *testing.T) {
	m := state(midway())
	for width := 20; width < 220; width++ {
		for _, line := range terminal.Block(m, width) {
			if n := terminal.Columns(line); n >= width || strings.Contains(line, "\x1b") || strings.Contains(line, "\r") {
				t.Errorf("%d columns: %d in %q", width, n, line)
			}
		}
	}
	got, want := terminal.Line(m), "convert 16% · about 27s left · 11s so far · 4/36 published · 8.20 GB of 16.1 GB read"
	if got != want {
		t.Errorf("without a terminal:\n%s\nwant\n%s", got, want)
	}
}
