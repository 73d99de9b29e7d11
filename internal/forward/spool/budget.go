package spool

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"golang.org/x/sync/semaphore"
)

// A Budget hands out bytes of disk or memory.
type Budget struct {
	*semaphore.Weighted
	Limit int64
}

// NewBudget makes a budget; a limit of 0 is none.
func NewBudget(limit int64) *Budget {
	limit = cmp.Or(limit, math.MaxInt64)
	return &Budget{semaphore.NewWeighted(limit), limit}
}

// Acquire waits until n bytes are free. A request above the whole limit is an error at once: it
// could never be met.
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
