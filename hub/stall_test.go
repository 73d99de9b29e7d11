package hub

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Under synctest, time jumps when everything waits, so we can test real timeouts without waiting.

// slowBody returns one byte every gap until its request ends.
type slowBody struct {
	ctx  context.Context //nolint:containedctx // of the one request that this body belongs to
	gap  time.Duration
	data []byte
}

func (b *slowBody) Read(p []byte) (int, error) {
	timer := time.NewTimer(b.gap)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-b.ctx.Done():
		return 0, b.ctx.Err()
	}
	if len(b.data) == 0 {
		return 0, io.EOF
	}
	p[0], b.data = b.data[0], b.data[1:]
	return 1, nil
}

func (b *slowBody) Close() error { return nil }

// TestStalledDownloadsGoOn checks that a body that brings nothing, or a byte per second, is given
// up after half a minute, and that its bytes are kept.
func TestStalledDownloadsGoOn(t *testing.T) {
	for gap, rest := range map[time.Duration]string{time.Hour: "0-999", time.Second: "30-999"} {
		synctest.Test(t, func(t *testing.T) {
			h := newFileHub(t, 1000)
			h.fault = onFirst(func(r *http.Request, g *http.Response) (*http.Response, error) {
				g.Body = &slowBody{r.Context(), gap, h.data}
				return g, nil
			})
			c, _ := testClient(t, h, realTime)
			start := time.Now()
			got, err := c.ReadRange(t.Context(), h.ref(), 0, 1000)
			if err != nil || !bytes.Equal(got, h.data) || h.nGets() != 2 || h.gets[1] != rest {
				t.Fatalf("asked for %v, %v", h.gets, err)
			}
			if d := time.Since(start); d < 30*time.Second || d > 32*time.Second {
				t.Errorf("took %v", d)
			}
		})
	}
}

// TestUploadStall checks a storage that takes some of 100 bytes and then hangs.
func TestUploadStall(t *testing.T) {
	for taken, want := range map[int64]time.Duration{1: 30 * time.Second, 100: slowAnswer} {
		synctest.Test(t, func(t *testing.T) {
			w := script(func(r *http.Request) (*http.Response, error) {
				_, _ = io.CopyN(io.Discard, r.Body, taken)
				<-r.Context().Done()
				return nil, r.Context().Err()
			}, func(r *http.Request) (*http.Response, error) {
				_, err := io.Copy(io.Discard, r.Body)
				return reply(r, 200, ""), err
			})
			c, _ := testClient(t, w, realTime)
			start := time.Now()
			if err := putZeros(t.Context(), c, "https://cdn.test/x", 100); err != nil || w.Count() != 2 {
				t.Fatalf("%d requests, %v", w.Count(), err)
			}
			if d := time.Since(start); d < want || d > want+2*time.Second {
				t.Errorf("%d bytes taken: took %v, want about %v", taken, d, want)
			}
		})
	}
}

// putZeros sends a file of zeros to a link.
func putZeros(ctx context.Context, c *Client, link string, n int64) error {
	u := &upload{Client: c, repo: "a/b", Blob: Blob{Path: "x", Size: n, Reader: zeros{}}}
	_, err := u.put(ctx, &parts{chunk: n, urls: []string{link}}, 0)
	return err
}

func TestCancelEndsAStreamAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFileHub(t, 9000)
		h.fault = func(_ int, r *http.Request, g *http.Response) (*http.Response, error) {
			g.Body = &slowBody{r.Context(), 20 * time.Second, h.data}
			return g, nil
		}
		c, _ := testClient(t, h, realTime, smallRanges)
		ctx, cancel := context.WithCancelCause(t.Context())
		s, err := c.Stream(ctx, h.ref(), 0, 9000)
		must(t, err)
		cause := errors.New("user says stop")
		time.AfterFunc(time.Second, func() { cancel(cause) })
		start := time.Now()
		if _, err := io.ReadAll(s); !errors.Is(err, cause) {
			t.Errorf("got %v", err)
		}
		if err := s.Close(); err != nil || time.Since(start) != time.Second {
			t.Errorf("close after %v: %v", time.Since(start), err)
		}
		if !allFree(c) {
			t.Error("buffers or connections are not given back")
		}
	})
}

func TestSlowReaderIsNoStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFileHub(t, 9000)
		c, _ := testClient(t, h, realTime, smallRanges)
		s, err := c.Stream(t.Context(), h.ref(), 0, 9000)
		must(t, err)
		defer s.Close()
		var got []byte
		buf := make([]byte, 1000)
		for {
			n, err := s.Read(buf)
			got = append(got, buf[:n]...)
			if err == io.EOF {
				break
			}
			must(t, err)
			time.Sleep(5 * time.Minute) // links are valid for an hour
		}
		if !bytes.Equal(got, h.data) || h.nGets() != 9 {
			t.Errorf("%d bytes, %d gets", len(got), h.nGets())
		}
	})
}

// TestStreamsShareTheBudget opens more streams than there are buffers and reads the last one first.
// Each must be able to finish alone.
func TestStreamsShareTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFileHub(t, 9000)
		c, _ := testClient(t, h, realTime, smallRanges)
		var streams []io.ReadCloser
		for range 6 {
			s, err := c.Stream(t.Context(), h.ref(), 0, 9000)
			must(t, err)
			streams = append(streams, s)
			synctest.Wait()
		}
		if n := h.nGets(); n != 4+6 {
			t.Errorf("%d ranges fetched ahead; 4 shared buffers and 6 own ones make 10", n)
		}
		for i := len(streams) - 1; i >= 0; i-- {
			got, err := io.ReadAll(streams[i])
			if err != nil || !bytes.Equal(got, h.data) {
				t.Errorf("stream %d: %d bytes, %v", i, len(got), err)
			}
			streams[i].Close()
		}
		if len(c.files.buffers) != cap(c.files.buffers) {
			t.Error("buffers are not given back")
		}
	})
}

// TestFreeBuffers checks that buffers are kept between streams until they're freed. A stream in the
// middle loses none, and the next one makes its own.
func TestFreeBuffers(t *testing.T) {
	h := newFileHub(t, 9000)
	c, _ := testClient(t, h, smallRanges)
	made := func() (n int) {
		for range cap(c.files.buffers) {
			b := <-c.files.buffers
			if c.files.buffers <- b; b != nil {
				n++
			}
		}
		return n
	}
	if err := streamAll(t, c, h); err != nil || made() == 0 {
		t.Fatalf("%d buffers, %v", made(), err)
	}
	s, err := c.Stream(t.Context(), h.ref(), 0, 9000)
	must(t, err)
	c.FreeBuffers()
	if got, err := io.ReadAll(s); err != nil || !bytes.Equal(got, h.data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	s.Close()
	if c.FreeBuffers(); made() != 0 || !allFree(c) {
		t.Errorf("%d buffers are left", made())
	}
}

// TestLimitRateOfAllClients checks that the clients of one governor share the limit.
func TestLimitRateOfAllClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, governor := newFileHub(t, 20_000), NewGovernor()
		start := time.Now()
		var clients sync.WaitGroup
		for range 2 {
			c, _ := testClient(t, h, realTime, smallRanges, func(o *Options) { o.LimitRate, o.Governor = 1000, governor })
			clients.Go(func() {
				if err := streamAll(t, c, h); err != nil {
					t.Error(err)
				}
			})
		}
		clients.Wait()
		if d := time.Since(start); d < 39*time.Second || d > 41*time.Second {
			t.Errorf("twice 20 kB at 1 kB/s took %v", d)
		}
	})
}

func TestCancelEndsAnUploadAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &scripted{Answer: func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done() // neither reads the body nor answers
			return nil, r.Context().Err()
		}}
		c, _ := testClient(t, w, realTime)
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("user says stop")
		time.AfterFunc(time.Second, func() { cancel(cause) })
		start := time.Now()
		if err := putZeros(ctx, c, "https://cdn.test/x", 100); !errors.Is(err, cause) || time.Since(start) != time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		if w.Count() != 1 || !c.puts.TryAcquire(maxTransfers) {
			t.Errorf("%d requests, or a place is held", w.Count())
		}
	})
}
