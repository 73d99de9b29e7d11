package main

import (
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/df11-convert/df11-convert/internal/progress"
	"github.com/df11-convert/df11-convert/internal/terminal"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// midway returns a conversion of 16 GB with --push, ten seconds after its first bytes have passed
// all stages.
func midway() *progress.Motion {
	var m progress.Motion
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	var p progress.Counters
	p.SetPhase("convert")
	p.SourceBytes.Store(16_060_000_000)
	p.OutputBytes.Store(16_060_000_000 * 7 / 10)
	p.OutputFiles.Store(36)
	p.Expect(progress.Read, progress.Encode, progress.Verify, progress.Upload)
	m.Add(p.Snapshot(), now)
	for _, n := range []interface{ Store(int64) }{&p.Fetched, &p.Encoded, &p.Verified, &p.Uploaded} {
		n.Store(1)
	}
	m.Add(p.Snapshot(), now.Add(time.Second))
	p.Outputs.Store(6)
	p.Fetched.Store(8_200_000_000)
	p.Encoded.Store(4_400_000_000)
	p.Verified.Store(4_100_000_000)
	p.Uploaded.Store(1_900_000_000)
	s := p.Snapshot()
	for i, st := range []struct {
		bytes int64
		busy  time.Duration
	}{{8_200e6, 4000e6}, {4_400e6, 3000e6}, {4_100e6, 3500e6}, {2_800e6, 1000e6}, {1_900e6, 9900e6}} {
		s.Stages[i].Bytes, s.Stages[i].Busy = st.bytes, st.busy
	}
	m.Add(s, now.Add(11*time.Second))
	return &m
}

func plainText(_ terminal.Style, s string) string { return s }

// TestProgressFits checks that no line is wider than the terminal, at any width.
func TestProgressFits(t *testing.T) {
	m := midway()
	for width := range 220 {
		for _, line := range terminal.Block(m, width, plainText) {
			if n := terminal.Columns(line); n >= width || strings.Contains(line, "\x1b") || strings.Contains(line, "\r") {
				t.Errorf("%d columns: %d in %q", width, n, line)
			}
		}
	}
	if got, want := terminal.Line(m), "convert 16% · 49s left · 11s so far · 6/36 files · bottleneck: upload · read 8.20 GB of 16.1 GB · "+
		"read 820 MB/s · encode 440 MB/s · verify 410 MB/s · upload 190 MB/s"; got != want {
		t.Errorf("without a terminal:\n%s\nwant\n%s", got, want)
	}
}

// TestABottleneckWithoutABarIsNamed checks that hashing can be the bottleneck, although it has no
// bar.
func TestABottleneckWithoutABarIsNamed(t *testing.T) {
	m := midway()
	s := m.Snapshot
	s.Stages = slices.Clone(s.Stages)
	s.Stages[progress.Hash].Busy += time.Hour
	m.Add(s, time.Date(2026, 11, 22, 13, 0, 0, 0, time.UTC))
	if first := terminal.Block(m, 120, plainText)[0]; !strings.HasSuffix(first, "6/36 files · bottleneck: hash") {
		t.Errorf("the first line is %q", first)
	}
}

// TestTheFirstLineHasTheSpeed checks that without a terminal, the first line about a stage has
// its speed.
func TestTheFirstLineHasTheSpeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b strings.Builder
		null, err := os.Open(os.DevNull)
		world.Must(t, err)
		defer null.Close()
		u := newUI(null, null)
		u.screen.W = &b
		var p progress.Counters
		p.SourceBytes.Store(1e9)
		stop := u.watch(&p, "")
		for range 21 {
			done := p.Timed(progress.Verify)
			time.Sleep(500 * time.Millisecond)
			done(1e6)
			p.Verified.Add(1e6)
		}
		stop()
		if first, _, _ := strings.Cut(b.String(), "\n"); !strings.Contains(first, "verify") || !strings.HasSuffix(first, " MB/s") {
			t.Errorf("the first line is %q", first)
		}
	})
}
