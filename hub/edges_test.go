package hub

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// edgeHub serves one file of zeros over connections of different rates, like a storage network. A
// connection keeps its rate for life.
type edgeHub struct {
	size int64
	rate func(n int) int64 // bytes per second of the n-th connection, from 0

	starts time.Duration // how long a new connection has a tenth of its rate

	pauseFrom, pauseTo time.Time // when the whole network is dead

	mu            sync.Mutex
	nConns, nGets int
}

// edgeConn is a connection that brings bytes at a rate.
type edgeConn struct {
	net.Conn
	h    *edgeHub
	rate int64
	paid time.Time
	full time.Time // from when on it has its rate
}

func (c *edgeConn) Read(p []byte) (int, error) {
	rate := c.rate
	if time.Now().Before(c.full) {
		rate /= 10
	}
	n, err := c.Conn.Read(p[:min(len(p), max(64, int(rate/100)))])
	if oldest := time.Now().Add(-50 * time.Millisecond); c.paid.Before(oldest) {
		c.paid = oldest // make up for what a late timer loses
	}
	c.paid = c.paid.Add(time.Duration(float64(n) / float64(rate) * 1e9))
	time.Sleep(time.Until(c.paid))
	if c.paid.After(c.h.pauseFrom) {
		time.Sleep(time.Until(c.h.pauseTo))
	}
	return n, err
}

// over limits a new connection to its rate.
func (h *edgeHub) over(c net.Conn) net.Conn {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.nConns++
	return &edgeConn{Conn: c, h: h, rate: h.rate(h.nConns - 1), full: time.Now().Add(h.starts)}
}

func (h *edgeHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		h.mu.Lock()
		h.nGets++
		h.mu.Unlock()
	}
	w.Header().Set("X-Repo-Commit", testCommit)
	w.Header().Set("ETag", strconv.Quote(shaA))
	http.ServeContent(w, r, "", time.Time{}, io.NewSectionReader(zeros{}, 0, h.size))
}

// zeros is an endless file.
type zeros struct{}

func (zeros) ReadAt(p []byte, _ int64) (int, error) {
	clear(p)
	return len(p), nil
}

func (h *edgeHub) ref() FileRef {
	return FileRef{Repo: "a/b", Commit: testCommit, Path: "m", Size: h.size, SHA256: shaA}
}

// pipes is a listener inside a synctest bubble.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.done); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// overPipes runs a real HTTP server and client in a bubble, where time is exact.
func (h *edgeHub) overPipes(t *testing.T, do func(*testing.T, *Client), change ...func(*Options)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := &pipes{make(chan net.Conn), make(chan struct{})}
		srv := &http.Server{Handler: h}
		go func() { _ = srv.Serve(p) }()
		// it may run after the server ended, for a request that another connection served
		dial := func(context.Context, string, string) (net.Conn, error) {
			client, server := net.Pipe()
			select {
			case p.conns <- server:
				return h.over(client), nil
			case <-p.done:
				return nil, net.ErrClosed
			}
		}
		rt := &http.Transport{DialContext: dial, MaxIdleConnsPerHost: 2 * maxTransfers}
		opt := Options{Connection: Connection{Endpoint: "http://hub.test", HTTPTransport: rt}, RangeBytes: edgeRange}
		for _, f := range change {
			f(&opt)
		}
		c, err := New(opt)
		must(t, err)
		do(t, c)
		rt.CloseIdleConnections()
		_ = srv.Close()
		time.Sleep(time.Hour) // until the server's last Write has noticed
	})
}

// The network of 2026, scaled: of sixteen connections, ten reach machines with 8.7 MB/s, and six
// reach machines with 68 MB/s.
const (
	edgeScale = 64
	edgeRange = 16 << 20 / edgeScale
	slowEdge  = 8_700_000 / edgeScale
	fastEdge  = 68_000_000 / edgeScale
	offered   = 10*slowEdge + 6*fastEdge
)

// mixedEdges deals slow and fast machines like cards: 5 of every 8 are slow, in an order from a
// seed.
func mixedEdges(seed int) func(int) int64 {
	return func(n int) int64 {
		round := (n/8*7 + seed) % 8
		if (n*3+round)%8 < 5 {
			return slowEdge
		}
		return fastEdge
	}
}

func steady(rate int64) func(int) int64 { return func(int) int64 { return rate } }

// share reads the file and returns the rate as a share of that many bytes per second.
func (h *edgeHub) share(tb testing.TB, c *Client, rate int64) float64 {
	tb.Helper()
	start := time.Now()
	s, err := c.Stream(tb.Context(), h.ref(), 0, h.size)
	must(tb, err)
	defer s.Close()
	if n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, s, make([]byte, 1<<20)); n != h.size || err != nil {
		tb.Fatal(n, err)
	}
	return float64(h.size) / time.Since(start).Seconds() / float64(rate)
}

// TestSlowConnectionsNeverSetThePaceOfFastOnes checks that a stream gets most of what its
// connections offer, because slow ones are replaced. Time is virtual and exact.
func TestSlowConnectionsNeverSetThePaceOfFastOnes(t *testing.T) {
	for seed := range 8 {
		h := &edgeHub{size: 10 * offered, rate: mixedEdges(seed)}
		h.overPipes(t, func(t *testing.T, c *Client) {
			share := h.share(t, c, offered)
			if share < 0.8 {
				t.Errorf("seed %d: %.0f%% of what the connections offer", seed, 100*share)
			}
		})
	}
}

// TestALonelySlowConnectionIsReplaced checks a file whose last range meets a slow machine after all
// other ranges ended.
func TestALonelySlowConnectionIsReplaced(t *testing.T) {
	const before, slow = 4, 4000
	h := &edgeHub{size: before * edgeRange, rate: func(n int) int64 {
		if n == before {
			return slow
		}
		return fastEdge
	}}
	h.overPipes(t, func(t *testing.T, c *Client) {
		h.share(t, c, fastEdge)
		c.t.opt.HTTPTransport.(*http.Transport).CloseIdleConnections()
		start := time.Now()
		if _, err := c.ReadRange(t.Context(), h.ref(), 0, edgeRange); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); h.nConns != before+2 || took > 5*time.Second {
			t.Errorf("took %v over %d connections", took, h.nConns-before)
		}
	})
}

// TestEqualConnectionsAreNeverReplaced checks that connections are kept if none is better.
func TestEqualConnectionsAreNeverReplaced(t *testing.T) {
	for name, rate := range map[string]int64{"fast": fastEdge, "slow": slowEdge, "very slow": 40_000} {
		h := &edgeHub{size: 4 * maxTransfers * edgeRange, rate: steady(rate)}
		h.overPipes(t, func(t *testing.T, c *Client) {
			share := h.share(t, c, maxTransfers*rate)
			if h.nConns > maxTransfers || share < 0.8 {
				t.Errorf("%s: %.0f%% over %d connections", name, 100*share, h.nConns)
			}
		})
	}
}

// TestConnectionsThatHardlyLagStay checks that connections are kept that are little slower than
// others, or too slow to compare.
func TestConnectionsThatHardlyLagStay(t *testing.T) {
	for name, rates := range map[string][]int64{"at most twice as slow": {fastEdge / 3, fastEdge / 6},
		"too few packets": {40_000, 8_000}} {
		h := &edgeHub{size: 4 * maxTransfers * edgeRange, rate: func(n int) int64 { return rates[n%2] }}
		h.overPipes(t, func(t *testing.T, c *Client) {
			if h.share(t, c, fastEdge); h.nConns != maxTransfers {
				t.Errorf("%s: %d connections", name, h.nConns)
			}
		})
	}
}

// TestANewConnectionMaySpeedUp checks that one slow connection is replaced once: the new one starts
// slowly, but isn't compared yet.
func TestANewConnectionMaySpeedUp(t *testing.T) {
	h := &edgeHub{size: 10 * offered, starts: 500 * time.Millisecond, rate: func(n int) int64 {
		if n == 0 {
			return fastEdge / 20
		}
		return fastEdge
	}}
	h.overPipes(t, func(t *testing.T, c *Client) {
		// net/http may dial one in vain
		if h.share(t, c, fastEdge); h.nConns <= maxTransfers || h.nConns > maxTransfers+2 {
			t.Errorf("%d connections", h.nConns)
		}
	})
}

// TestALineThatFaltersKeepsItsConnections checks two seconds without bytes on all connections,
// which is no connection's fault.
func TestALineThatFaltersKeepsItsConnections(t *testing.T) {
	h := &edgeHub{size: 4 * maxTransfers * fastEdge, rate: steady(fastEdge)}
	h.overPipes(t, func(t *testing.T, c *Client) {
		h.pauseFrom, h.pauseTo = time.Now().Add(1100*time.Millisecond), time.Now().Add(3100*time.Millisecond)
		if share := h.share(t, c, maxTransfers*fastEdge); h.nConns != maxTransfers || share > 0.7 {
			t.Errorf("%.0f%% over %d connections", 100*share, h.nConns)
		}
	})
}

// TestThinHonestLinesAreNeverGivenUp checks that 20 kB/s bring every byte, over however many
// connections.
func TestThinHonestLinesAreNeverGivenUp(t *testing.T) {
	for _, n := range []int64{1, 4, maxTransfers} {
		h := &edgeHub{size: 2 * edgeRange, rate: steady(20_000 / n)}
		h.overPipes(t, func(t *testing.T, c *Client) {
			h.share(t, c, 20_000)
			if h.nGets != 2 {
				t.Errorf("%d connections: %d GETs", n, h.nGets)
			}
		}, func(o *Options) { o.BufferBytes = n * o.RangeBytes })
	}
}

// TestATrickleNeverLastsForEver checks that 500 bytes per second and connection end the read within
// minutes.
func TestATrickleNeverLastsForEver(t *testing.T) {
	for _, jitter := range []float64{0, 0.6, 1} {
		h := &edgeHub{size: 16 * edgeRange, rate: steady(500)}
		h.overPipes(t, func(t *testing.T, c *Client) {
			c.t.jitter = func() float64 { return jitter }
			start := time.Now()
			s, err := c.Stream(t.Context(), h.ref(), 0, h.size)
			must(t, err)
			defer s.Close()
			_, err = io.Copy(io.Discard, s)
			if d := time.Since(start); !errors.Is(err, errStalled) || d > 7*time.Minute {
				t.Errorf("jitter %v, after %v: %v", jitter, d, err)
			}
		})
	}
}
