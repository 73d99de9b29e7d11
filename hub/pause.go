package hub

import (
	"context"
	"sync/atomic"
	"time"
)

// Wait is one pause that the client takes, told to Options.OnWait before it begins, and again while it lasts.
type Wait struct {
	Reason string        // "rate limit of bucket api reached", "503 Service Unavailable"
	For    time.Duration // from now on
	Lost   time.Duration // before: in the request that failed, 0 if none did; in a reminder, since people have heard of the trouble
}

// Noticeable reports whether a pause takes long enough for people to wonder. Shorter ones need not be shown.
func (w Wait) Noticeable() bool { return w.For+w.Lost >= 5*time.Second }

// pauses are the waits of a client, and what people hear of them.
type pauses struct {
	clock  Clock
	onWait func(Wait)    // nil for nobody
	waited *atomic.Int64 // nanoseconds, shared pauses counted once
	heard  atomic.Int64  // when a request went well, or people heard of a pause; Unix nanoseconds
}

// remindEvery bounds the silence while pauses follow one another and nothing goes well between them.
const remindEvery = 20 * time.Second

// pause lets one worker wait.
func (p *pauses) pause(ctx context.Context, w Wait) error {
	p.tell(w)
	return p.sleep(ctx, w)
}

// tell counts a pause and passes it on. One that takes no time is no news.
func (p *pauses) tell(w Wait) {
	if w.For <= 0 {
		return
	}
	p.waited.Add(int64(w.For))
	if p.onWait != nil {
		if w.Noticeable() {
			p.heard.Store(p.clock.Now().UnixNano())
		}
		p.onWait(w)
	}
}

// sleep waits as w says, which was told already, and reminds of it when that is due.
func (p *pauses) sleep(ctx context.Context, w Wait) error {
	for p.onWait != nil && w.For > 0 {
		silence := time.Duration(p.clock.Now().UnixNano() - p.heard.Load())
		nap := min(w.For, max(0, remindEvery-silence))
		if err := p.clock.Sleep(ctx, nap); err != nil {
			return err
		}
		if w.For -= nap; w.For > 0 {
			p.remind(w)
		}
	}
	return p.clock.Sleep(ctx, w.For)
}

// remind passes a pause on again, for one of the workers that wait.
func (p *pauses) remind(w Wait) {
	last, now := p.heard.Load(), p.clock.Now().UnixNano()
	w.Lost = time.Duration(now - last)
	if w.Lost >= remindEvery && p.heard.CompareAndSwap(last, now) {
		p.onWait(w)
	}
}

// over notes that a request went well.
func (p *pauses) over() { p.heard.Store(p.clock.Now().UnixNano()) }

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
