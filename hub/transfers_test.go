package hub

import (
	"cmp"
	"io"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/semaphore"
)

// TestConnectionsStayWithinMemory checks that there are never more connections than buffers.
func TestConnectionsStayWithinMemory(t *testing.T) {
	for _, tt := range []struct {
		rng, buffer int64
		conns       int64
		nAhead      int
	}{
		{0, 0, 16, 24},
		{1 << 20, 16 << 20, 16, 16},
		{1 << 20, 64 << 20, 16, 64},
		{1 << 20, 4 << 20, 4, 4},
		{4 << 20, 1 << 20, 1, 0}, // every stream has its own buffer
	} {
		c, err := New(Options{RangeBytes: tt.rng, BufferBytes: tt.buffer})
		must(t, err)
		other, err := New(Options{RangeBytes: 2 << 20, BufferBytes: 6 << 20})
		must(t, err)
		call, err := other.With(Call{RangeBytes: tt.rng, BufferBytes: tt.buffer})
		must(t, err)
		for _, c := range []*Client{c, call} {
			for _, places := range []*semaphore.Weighted{c.files.conns, c.puts} {
				if !places.TryAcquire(tt.conns) || places.TryAcquire(1) {
					t.Errorf("%+v: other than %d transfers", tt, tt.conns)
				}
			}
			if c.files.peers.conns != tt.conns || cap(c.files.buffers) != tt.nAhead || c.files.rangeBytes != cmp.Or(tt.rng, DefaultRangeBytes) {
				t.Errorf("%+v: %d connections, %d buffers of %d", tt, c.files.peers.conns, cap(c.files.buffers), c.files.rangeBytes)
			}
		}
	}
}

// TestAWaitingTransferHoldsNoSlot checks that the only slot serves another transfer while one waits
// for its next try.
func TestAWaitingTransferHoldsNoSlot(t *testing.T) {
	for name, refuse := range map[string]func(*http.Request) (*http.Response, error){
		"fails":         says(500, ""),
		"breaks":        breaks(io.ErrUnexpectedEOF),
		"asks to wait":  says(503, "", "Retry-After: 60"),
		"has a quota":   says(429, "", `RateLimit: "cdn";r=0;t=60`),
		"link is stuck": says(500, ""),
	} {
		synctest.Test(t, func(t *testing.T) {
			failures := 2
			w := &scripted{}
			w.Answer = func(r *http.Request) (*http.Response, error) {
				sick := r.URL.Host == "sick.test" || r.Method == http.MethodHead && r.URL.Path == "/a/b/resolve/"+testCommit+"/sick" && name == "link is stuck"
				switch {
				case sick && failures > 0:
					failures--
					return refuse(r)
				case r.Method == http.MethodHead:
					host := map[bool]string{true: "sick", false: "well"}[r.URL.Path[len(r.URL.Path)-4:] == "sick"]
					return reply(r, 302, "", "X-Repo-Commit: "+testCommit, "X-Linked-ETag: "+shaA, "X-Linked-Size: 5", "Location: https://"+host+".test/x"), nil
				case r.Method == http.MethodGet:
					return reply(r, 206, "12345", "Content-Range: bytes 0-4/5"), nil
				}
				_, err := io.Copy(io.Discard, r.Body)
				return reply(r, 200, ""), err
			}
			c, _ := testClient(t, w, realTime, oneTransfer)
			down := func(path string) error {
				_, err := c.ReadRange(t.Context(), FileRef{Repo: "a/b", Commit: testCommit, Path: path, Size: 5, SHA256: shaA}, 0, 5)
				return err
			}
			stream := func(path string) error {
				s, err := c.Stream(t.Context(), FileRef{Repo: "a/b", Commit: testCommit, Path: path, Size: 5, SHA256: shaA}, 0, 5)
				if err != nil {
					return err
				}
				defer s.Close()
				_, err = io.ReadAll(s)
				return err
			}
			up := func(path string) error { return putZeros(t.Context(), c, "https://"+path+".test/x", 5) }
			for way, transfer := range map[string]func(string) error{"down": down, "stream": stream, "up": up} {
				if name == "link is stuck" && way == "up" {
					continue
				}
				failures = 2
				start := time.Now()
				var both sync.WaitGroup
				both.Go(func() {
					if err := transfer("sick"); err != nil || time.Since(start) < time.Second {
						t.Errorf("%s %s: after %v: %v", name, way, time.Since(start), err)
					}
				})
				synctest.Wait() // it has the slot or waits
				if err := transfer("well"); err != nil || time.Since(start) > 0 {
					t.Errorf("%s %s: the other waited %v: %v", name, way, time.Since(start), err)
				}
				both.Wait()
			}
		})
	}
}

// oneTransfer leaves memory for one range.
func oneTransfer(o *Options) { o.RangeBytes, o.BufferBytes = 1<<20, 1<<20 }
