package wire

import (
	"context"
	"time"
)

// A Wait is long enough that people wonder. Options.OnWait reports it.
type Wait struct {
	Host   string        // the Hub or its storage
	Reason string        // "rate limit of bucket api reached", "503 Service Unavailable"
	For    time.Duration // from now on
}

// noticeable is how long nothing may happen before people wonder.
const noticeable = 5 * time.Second

// Pause waits for a host. It reports a long wait, and no other until that one ends.
func (t *Transport) Pause(ctx context.Context, host, reason string, d time.Duration) error {
	now, known := t.Opt.Clock.Now(), t.known.Load()
	if t.Opt.OnWait != nil && d >= noticeable && now.UnixNano() >= known &&
		t.known.CompareAndSwap(known, now.Add(d).UnixNano()) {
		t.Opt.OnWait(Wait{Host: host, Reason: reason, For: d})
	}
	return t.Opt.Clock.Sleep(ctx, d)
}

// A Clock returns the time and waits. Many goroutines call both methods at once. Sleep returns the
// cause of ctx as soon as ctx ends. The watch over stalled connections uses real time instead.
type Clock interface {
	Now() time.Time
	Sleep(ctx context.Context, d time.Duration) error
}

// systemClock is the system's Clock.
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
