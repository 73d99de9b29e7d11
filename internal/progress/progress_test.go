package progress_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/df11-convert/df11-convert/internal/progress"
)

// TestShare: every byte that passes an expected stage moves the share, and the work is done when
// all stages are.
func TestShare(t *testing.T) {
	var p progress.Counters
	share := func() float64 { s := p.Snapshot(); return s.Share() }
	if share() != 0 {
		t.Error("work is done before there is any")
	}
	p.SourceBytes.Store(1000)
	p.OutputBytes.Store(700)
	p.Expect(progress.Read, progress.Encode, progress.Verify, progress.Upload)
	last := 0.0
	for name, step := range map[string]func(){
		"read":   func() { p.Fetched.Add(1000) },
		"encode": func() { p.Encoded.Add(1000) },
		"verify": func() { p.Verified.Add(1000) },
		"upload": func() { p.Uploaded.Add(700) },
	} {
		step()
		if now := share(); now <= last {
			t.Errorf("%s: the share goes from %v to %v", name, last, now)
		}
		last = share()
	}
	if last != 1 {
		t.Errorf("all is done, but the share is %v", last)
	}
}

// TestShareOfVerification: what only verifies is done when all is verified, whatever it reads.
func TestShareOfVerification(t *testing.T) {
	var p progress.Counters
	p.SourceBytes.Store(10)
	p.Fetched.Store(10)
	p.Verified.Store(5)
	if s := p.Snapshot(); s.Share() != 0.5 {
		t.Errorf("the share is %v", s.Share())
	}
}

// TestUploading: an upload counts while it is read; what is read twice counts once, what fails not
// at all, and what the hub has already counts whole.
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
