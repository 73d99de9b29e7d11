package progress_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/df11-convert/df11-convert/internal/progress"
)

// The share is that of the stage furthest behind, and the work is done when all stages are.
func TestShare(t *testing.T) {
	var p progress.Counters
	check := func(want float64) {
		t.Helper()
		if p.Share() != want {
			t.Errorf("the share is %v instead of %v", p.Share(), want)
		}
	}
	check(0)
	p.SourceBytes.Store(1000)
	p.OutputBytes.Store(800)
	p.Verified.Store(500)
	check(0.5) // a run that only verifies
	p.Verified.Store(0)
	p.Expect(progress.Read, progress.Encode, progress.Verify, progress.Upload)
	p.Fetched.Add(1000)
	p.Encoded.Add(750)
	check(0)
	p.Verified.Add(500)
	p.Uploaded.Add(200)
	check(0.25)
	p.Uploaded.Add(600)
	check(0.5)
	p.Encoded.Add(250)
	p.Verified.Add(500)
	check(1)
}

// An upload counts while it is read. Bytes that are read twice count once, a failed upload doesn't
// count, and a file that the Hub already has counts in full.
func TestUploading(t *testing.T) {
	file := bytes.NewReader(make([]byte, 100))
	for name, c := range map[string]struct {
		reads       []int
		during, end int64
		sent        bool
	}{
		"whole":   {[]int{60, 40}, 100, 100, true},
		"retried": {[]int{60, 60, 40, 100}, 100, 100, true},
		"known":   {nil, 0, 100, true},
		"failed":  {[]int{60, 60}, 100, 0, false},
	} {
		var p progress.Counters
		r, end := p.Uploading(file, 100)
		for _, n := range c.reads {
			if _, err := io.ReadFull(io.NewSectionReader(r, 0, int64(n)), make([]byte, n)); err != nil {
				t.Fatal(err)
			}
		}
		if n := p.Uploaded.Load(); n != c.during {
			t.Errorf("%s: %d bytes while it is sent, want %d", name, n, c.during)
		}
		end(c.sent)
		if n := p.Uploaded.Load(); n != c.end {
			t.Errorf("%s: %d bytes at the end, want %d", name, n, c.end)
		}
	}
}

// ranged is a stream whose ranges arrive at the same time, so more has arrived than was read.
type ranged struct {
	io.Reader
	here int64
}

func (r *ranged) Arrived() int64 { return r.here }

// Bytes count when they arrive, not when they are read in order, and each counts once. When the
// reading ends, bytes that were never read stop counting.
func TestArriving(t *testing.T) {
	for name, fetched := range map[string]bool{"once": true, "of another pass": false} {
		var p progress.Counters
		p.Expect(progress.Read)
		p.SourceBytes.Store(100)
		stream := &ranged{Reader: bytes.NewReader(make([]byte, 100))}
		r, end := p.Arriving(stream, fetched)
		look := func(when string, want int64) {
			t.Helper()
			if !fetched {
				want = 0
			}
			if got := p.Work()[0].Done; got != want {
				t.Errorf("%s, %s: %d fetched, want %d", name, when, got, want)
			}
		}
		look("nothing is here", 0)
		stream.here = 80
		look("80 bytes are here", 80)
		if _, err := io.ReadFull(r, make([]byte, 60)); err != nil {
			t.Fatal(err)
		}
		look("60 of 80 bytes are read", 80)
		end()
		look("the reading has ended", 60)
	}
}
