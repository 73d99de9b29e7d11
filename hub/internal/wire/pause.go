package wire

import (
	"context"
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

// Pause waits. People hear of a long wait once, and of no other before its end.
func (t *Transport) Pause(ctx context.Context, reason string, d time.Duration) error {
	now, known := t.Opt.Clock.Now(), t.known.Load()
	if t.Opt.OnWait != nil && d >= noticeable && now.UnixNano() >= known &&
		t.known.CompareAndSwap(known, now.Add(d).UnixNano()) {
		t.Opt.OnWait(Wait{Reason: reason, For: d})
	}
	return t.Opt.Clock.Sleep(ctx, d)
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
