package wire

import (
	"context"
	"sync/atomic"
	"time"
)

// Wait is a pause that people hear of through Options.OnWait: one that takes long enough for them to wonder.
type Wait struct {
	Reason string        // "rate limit of bucket api reached", "503 Service Unavailable"
	For    time.Duration // from now on
}

// noticeable is how long nothing may happen before people wonder; remindEvery is how long a wait may last before they hear of it
// again.
const (
	noticeable  = 5 * time.Second
	remindEvery = 30 * time.Second
)

// pauses are the waits of a client.
type pauses struct {
	clock  Clock
	onWait func(Wait)    // nil for nobody
	waited *atomic.Int64 // nanoseconds, shared pauses counted once
	since  atomic.Int64  // when people last heard of a wait, or the first pause began that they did not hear of; 0 after a success
}

// pause lets one worker wait. failed is the time that was lost in the request before.
func (p *pauses) pause(ctx context.Context, w Wait, failed time.Duration) error {
	p.begin(w, failed)
	return p.sleep(ctx, w)
}

// begin counts a pause, and tells it if people have reason to wonder.
func (p *pauses) begin(w Wait, failed time.Duration) {
	if w.For <= 0 {
		return
	}
	p.waited.Add(int64(w.For))
	now := p.clock.Now().UnixNano()
	p.since.CompareAndSwap(0, now)
	if w.For+failed >= noticeable && p.onWait != nil {
		p.since.Store(now)
		p.onWait(w)
	}
}

// sleep waits as w says, and reminds people of it when that is due.
func (p *pauses) sleep(ctx context.Context, w Wait) error {
	for w.For > 0 {
		p.remind(w)
		nap := min(w.For, remindEvery-p.silence())
		if err := p.clock.Sleep(ctx, nap); err != nil {
			return err
		}
		w.For -= nap
	}
	return context.Cause(ctx)
}

// remind tells a wait again, for one of the workers that wait.
func (p *pauses) remind(w Wait) {
	since, now := p.since.Load(), p.clock.Now().UnixNano()
	if since != 0 && now-since >= int64(remindEvery) && p.since.CompareAndSwap(since, now) && p.onWait != nil {
		p.onWait(w)
	}
}

// silence is how long people have heard nothing of what is being waited for.
func (p *pauses) silence() time.Duration {
	since := p.since.Load()
	if since == 0 {
		return 0
	}
	return min(time.Duration(p.clock.Now().UnixNano()-since), remindEvery-time.Millisecond)
}

// over notes that a request went well.
func (p *pauses) over() { p.since.Store(0) }

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
