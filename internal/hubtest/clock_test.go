package hubtest

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestJumpClock: the clock shows all waits, and a wait of a context that has ended fails with its cause.
func TestJumpClock(t *testing.T) {
	c := NewJumpClock(Noon)
	begin := time.Now()
	if err := errors.Join(c.Sleep(t.Context(), time.Hour), c.Sleep(t.Context(), time.Second)); err != nil {
		t.Error(err)
	}
	if c.Waited() != time.Hour+time.Second || !c.Now().Equal(Noon.Add(c.Waited())) || time.Since(begin) > time.Minute {
		t.Errorf("waited %s, now %s", c.Waited(), c.Now())
	}
	why := errors.New("stopped")
	ctx, stop := context.WithCancelCause(t.Context())
	stop(why)
	if err := c.Sleep(ctx, time.Second); !errors.Is(err, why) {
		t.Errorf("the error is %v", err)
	}
}
