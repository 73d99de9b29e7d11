package main

import (
	"strings"
	"testing"
	"time"

	"github.com/df11-convert/df11-convert/internal/progress"
)

// midway is a conversion of 16 GB that is pushed, one second after its first snapshot.
func midway(t *testing.T) state {
	t.Helper()
	var m motion
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	var p progress.Counters
	p.SetPhase("convert")
	p.SourceBytes.Store(16_060_000_000)
	p.OutputBytes.Store(progress.Guess(16_060_000_000))
	p.OutputFiles.Store(36)
	p.Expect(progress.Read, progress.Encode, progress.Verify, progress.Upload)
	m.at(p.Snapshot(), now)
	p.Outputs.Store(6)
	p.Fetched.Store(8_200_000_000)
	p.Encoded.Store(4_400_000_000)
	p.Verified.Store(4_100_000_000)
	p.Uploaded.Store(1_900_000_000)
	s := p.Snapshot()
	for i, st := range []struct {
		bytes int64
		busy  time.Duration
	}{{8_200e6, 400e6}, {4_400e6, 300e6}, {4_100e6, 350e6}, {2_800e6, 100e6}, {1_900e6, 990e6}} {
		s.Stages[i].Bytes, s.Stages[i].Busy = st.bytes, st.busy
	}
	return m.at(s, now.Add(time.Second))
}

func plainText(_ style, s string) string { return s }

// TestProgressPictures: what matters first (percent, time left, bottleneck) is there at every width, and nothing is wider
// than the terminal.
func TestProgressPictures(t *testing.T) {
	s := midway(t)
	for width, want := range map[int]string{
		120: `
 30% ━━━━━━━━━━━╸──────────────────────────── 2s left · bottleneck: upload · 6/36 files
  read     8.20 GB  8.20 GB/s
  encode   4.40 GB  4.40 GB/s
  verify   4.10 GB  4.10 GB/s
  hash     2.80 GB  2.80 GB/s
  upload   1.90 GB  1.90 GB/s  ← bottleneck
`,
		80: `
 30% ━━━━━━╸─────────────────── 2s left · bottleneck: upload · 6/36 files
  read     8.20 GB  8.20 GB/s
  encode   4.40 GB  4.40 GB/s
  verify   4.10 GB  4.10 GB/s
  hash     2.80 GB  2.80 GB/s
  upload   1.90 GB  1.90 GB/s  ← bottleneck
`,
		30: `
30% · 2s left
`,
	} {
		got := strings.Join(s.lines(width, plainText), "\n")
		if want = strings.Trim(want, "\n"); got != want {
			t.Errorf("%d columns:\n%s\nwant\n%s", width, got, want)
		}
		for line := range strings.Lines(got) {
			if n := len([]rune(strings.TrimSpace(line))); n >= width {
				t.Errorf("%d columns: %d runes in %q", width, n, line)
			}
		}
	}
	if got, want := s.line(), "convert 30% · 2s left · bottleneck: upload · 6/36 files · 4.10 GB of 16.1 GB verified · "+
		"read 8.20 GB/s · encode 4.40 GB/s · verify 4.10 GB/s · hash 2.80 GB/s · upload 1.90 GB/s"; got != want {
		t.Errorf("without a terminal:\n%s\nwant\n%s", got, want)
	}
}

// TestProgressNeverFalls: a part of the work that turns out larger than it was guessed holds the percentage, and does not
// lower it.
func TestProgressNeverFalls(t *testing.T) {
	var m motion
	var p progress.Counters
	now := time.Now()
	p.SourceBytes.Store(100)
	p.OutputBytes.Store(70)
	p.Expect(progress.Upload)
	p.Uploaded.Store(35)
	m.at(p.Snapshot(), now)
	p.OutputBytes.Store(100)
	if s := m.at(p.Snapshot(), now.Add(time.Second)); s.percent() != 50 {
		t.Errorf("the share falls to %d%%", s.percent())
	}
}

func TestTimeLeft(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0s": 0, "59s": 59 * time.Second, "1m05s": 65 * time.Second, "2h05m": 125 * time.Minute, "3d4h": 76 * time.Hour,
	} {
		if got := timeLeft(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}

// TestScreen: messages appear above the block, whole and in order, and the last block stays.
func TestScreen(t *testing.T) {
	var b strings.Builder
	s := screen{w: &b}
	s.show([]string{"one", "two"})
	_, _ = s.Write([]byte("message\n"))
	s.show([]string{"one again"})
	s.release()
	_, _ = s.Write([]byte("after\n"))
	if got, want := rendered(b.String()), "message\none again\nafter\n"; got != want {
		t.Errorf("the terminal shows %q, want %q", got, want)
	}
}

// rendered is what a tall terminal shows after a text with the control sequences that screen uses.
func rendered(text string) string {
	var rows []string // the cursor is always at the start of row at
	at := 0
	put := func(line string) {
		for len(rows) <= at {
			rows = append(rows, "")
		}
		rows[at] = line
		at++
	}
	for text != "" {
		switch {
		case strings.HasPrefix(text, eraseBelow):
			rows, text = rows[:min(at, len(rows))], text[len(eraseBelow):]
		case strings.HasPrefix(text, "\x1b["):
			n := 0
			i := 2
			for ; '0' <= text[i] && text[i] <= '9'; i++ {
				n = 10*n + int(text[i]-'0')
			}
			if text[i] != 'F' {
				panic("unknown sequence in " + text)
			}
			at, text = at-n, text[i+1:]
		default:
			line, rest, _ := strings.Cut(text, "\n")
			put(strings.TrimSuffix(line, eraseRight))
			text = rest
		}
	}
	return strings.Join(rows, "\n") + "\n"
}
