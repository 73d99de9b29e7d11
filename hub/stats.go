package hub

import (
	"context"
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

// Clock tells the client the time and lets it wait. Both methods are called by many goroutines at once. Sleep returns
// the cause of ctx as soon as ctx ends. The watch over stalled connections does not use it, but real time.
type Clock interface {
	Now() time.Time
	Sleep(ctx context.Context, d time.Duration) error
}

// systemClock is the real one.
type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
