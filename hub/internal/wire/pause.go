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

// noticeable is how long nothing may happen before people wonder; remindEvery is how long a wait
// may last before they hear of it again.
const (
	noticeable  = 5 * time.Second
	remindEvery = 30 * time.Second
)

// pauses are the waits of a client.
type pauses struct {
	clock  Clock
	onWait func(Wait)   // nil for nobody
	told   atomic.Int64 // when people last heard of a wait
}

// sleep waits as w says, for a worker that has lost some time in the request before. Of all workers
// that wait, one tells people.
func (p *pauses) sleep(ctx context.Context, w Wait, lost time.Duration) error {
	for w.For > 0 {
		nap := w.For
		if p.onWait != nil {
			nap = min(nap, p.tell(w, lost))
		}
		if err := p.clock.Sleep(ctx, nap); err != nil {
			return err
		}
		w.For, lost = w.For-nap, lost+nap
	}
	return context.Cause(ctx)
}

// tell tells people of a wait that is long, or that follows soon after one that they know of. It
// gives the time until they are to hear of it again.
func (p *pauses) tell(w Wait, lost time.Duration) (due time.Duration) {
	told, now := p.told.Load(), p.clock.Now().UnixNano()
	silent := time.Duration(now - told)
	switch {
	case silent < remindEvery:
		return remindEvery - silent
	case silent < 2*remindEvery, w.For+lost >= noticeable:
		if p.told.CompareAndSwap(told, now) {
			p.onWait(w)
		}
	}
	return remindEvery
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
