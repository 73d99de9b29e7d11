package hubtest

import (
	"context"
	"sync"
	"time"
)

// A JumpClock is a clock for clients of the hub that makes no one wait: Sleep moves it ahead at
// once.
type JumpClock struct {
	mu     sync.Mutex
	now    time.Time
	waited time.Duration
}

// Noon is the start of clocks in tests that compare dates.
var Noon = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

// NewJumpClock returns a clock that shows now.
func NewJumpClock(now time.Time) *JumpClock { return &JumpClock{now: now} }

// Now returns the time that the clock shows.
func (c *JumpClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Sleep moves the clock. It fails with the context's cause once the context has ended.
func (c *JumpClock) Sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now, c.waited = c.now.Add(d), c.waited+d
	return context.Cause(ctx)
}

// Waited returns the sum of all sleeps.
func (c *JumpClock) Waited() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waited
}
