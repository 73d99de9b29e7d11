package spool

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"golang.org/x/sync/semaphore"
)

// A Budget limits bytes of disk or memory.
type Budget struct {
	*semaphore.Weighted
	Limit int64
}

// NewBudget returns a budget; a limit of 0 means no limit.
func NewBudget(limit int64) *Budget {
	limit = cmp.Or(limit, math.MaxInt64)
	return &Budget{semaphore.NewWeighted(limit), limit}
}

// Acquire waits until n bytes are free. If n exceeds the limit, it returns an error at once.
func (b *Budget) Acquire(ctx context.Context, n int64) error {
	if n > b.Limit {
		return fmt.Errorf("a budget of %d bytes can't hold the %d bytes that one output needs",
			b.Limit, n)
	}
	if b.Weighted.Acquire(ctx, n) != nil {
		return context.Cause(ctx)
	}
	return nil
}
