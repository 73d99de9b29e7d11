package wire

import (
	"context"
	"sync/atomic"
	"time"
)

// Wait is a pause that people hear of through Options.OnWait: one that takes long enough for them
// to wonder.
type Wait struct {
	Reason string        // "rate limit of bucket api reached", "503 Service Unavailable"
	For    time.Duration // from now on
}

// noticeable is how long nothing may happen before people wonder.
const noticeable = 5 * time.Second

// pauses are the waits of a client.
type pauses struct {
	clock  Clock
	onWait func(Wait)   // may be nil
	known  atomic.Int64 // the end of the wait that people heard of last
}

// sleep waits as w says. People hear of a long wait once, and of no other before its end.
func (p *pauses) sleep(ctx context.Context, w Wait) error {
	now, known := p.clock.Now(), p.known.Load()
	if p.onWait != nil && w.For >= noticeable && now.UnixNano() >= known &&
		p.known.CompareAndSwap(known, now.Add(w.For).UnixNano()) {
		p.onWait(w)
	}
	return p.clock.Sleep(ctx, w.For)
}

// Clock tells the client the time and lets it wait. Both methods are called by many goroutines at
// once. Sleep returns the cause of ctx as soon as ctx ends. The watch over stalled connections does
// not use it, but real time.
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
