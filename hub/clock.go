package hub

import (
	"context"
	"time"
)

// Clock is how the client tells time and waits. Both methods are called by
// many goroutines at once. Sleep returns the cause of ctx as soon as ctx ends.
// Only whether a connection stalls is not told by it: that is about the
// connection's own time.
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
