package spool

import (
	"context"
	"fmt"

	"golang.org/x/sync/semaphore"
)

// A Budget hands out bytes of disk or memory. A limit of 0 is no limit.
type Budget struct {
	name  string
	limit int64
	sem   *semaphore.Weighted
}

// NewBudget makes a budget; name is for its error.
func NewBudget(name string, limit int64) *Budget {
	b := &Budget{name: name, limit: limit}
	if limit > 0 {
		b.sem = semaphore.NewWeighted(limit)
	}
	return b
}

// Acquire waits until n bytes are free. A request above the whole limit is an error at once: it could never be met.
func (b *Budget) Acquire(ctx context.Context, n int64) error {
	if b.sem == nil {
		return nil
	}
	if n > b.limit {
		return fmt.Errorf("%s budget of %d bytes can't hold the %d bytes that one output needs", b.name, b.limit, n)
	}
	if err := b.sem.Acquire(ctx, n); err != nil {
		return context.Cause(ctx)
	}
	return nil
}

// TryAcquire takes n bytes if they are free.
func (b *Budget) TryAcquire(n int64) bool { return b.sem == nil || b.sem.TryAcquire(n) }

// Release gives n bytes back.
func (b *Budget) Release(n int64) {
	if b.sem != nil {
		b.sem.Release(n)
	}
}

// Limit is the size of the budget; 0 is no limit.
func (b *Budget) Limit() int64 { return b.limit }
