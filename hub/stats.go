package hub

import (
	"sync/atomic"
	"time"
)

// Stats is a snapshot of what a client has done so far.
type Stats struct {
	Requests    int64         // sent, redirect hops and repeats included
	Retries     int64         // repeats among them
	RateLimited int64         // answers 429
	Waited      time.Duration // pauses taken, shared ones counted once
	BytesIn     int64         // file bytes received, repeats included
	BytesOut    int64         // file bytes sent, repeats included
	LastWait    Wait          // the latest pause; its Reason is empty if there was none
}

type counters struct {
	requests, retries, rateLimited, waited, bytesIn, bytesOut atomic.Int64
	lastWait                                                  atomic.Pointer[Wait]
}

func (c *counters) snapshot() Stats {
	s := Stats{
		Requests:    c.requests.Load(),
		Retries:     c.retries.Load(),
		RateLimited: c.rateLimited.Load(),
		Waited:      time.Duration(c.waited.Load()),
		BytesIn:     c.bytesIn.Load(),
		BytesOut:    c.bytesOut.Load(),
	}
	if w := c.lastWait.Load(); w != nil {
		s.LastWait = *w
	}
	return s
}

// Stats may be called at any time.
func (c *Client) Stats() Stats { return c.t.stats.snapshot() }
