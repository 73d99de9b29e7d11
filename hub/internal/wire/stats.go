package wire

import (
	"sync/atomic"
	"time"
)

// Stats is a snapshot of what a client has done so far.
type Stats struct {
	Requests int64         // sent, redirect hops and repeats included
	Retries  int64         // repeats among them
	Waited   time.Duration // pauses taken, shared ones counted once
	BytesIn  int64         // file bytes received, repeats included
	BytesOut int64         // file bytes sent, repeats included
}

type counters struct {
	requests, retries, waited, bytesIn, bytesOut atomic.Int64
}

func (c *counters) snapshot() Stats {
	return Stats{
		Requests: c.requests.Load(),
		Retries:  c.retries.Load(),
		Waited:   time.Duration(c.waited.Load()),
		BytesIn:  c.bytesIn.Load(),
		BytesOut: c.bytesOut.Load(),
	}
}
