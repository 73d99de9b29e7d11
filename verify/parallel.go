package verify

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// parallel does jobs 0 to n-1, in this order, on as many goroutines as workers says; workers <= 0 means one per
// processor. The error is that of the lowest job with an error, whatever the timing; later jobs may be left out.
func parallel(ctx context.Context, n, workers int, do func(i int) error) error {
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	var next atomic.Int64
	var end atomic.Int64 // the lowest job with an error, or n
	end.Store(int64(n))
	var mu sync.Mutex // guards first, and writing to end
	var first error
	var group errgroup.Group
	for range min(workers, n) {
		group.Go(func() error {
			for i := next.Add(1) - 1; i < end.Load() && ctx.Err() == nil; i = next.Add(1) - 1 {
				err := do(int(i))
				if err == nil {
					continue
				}
				mu.Lock()
				if i < end.Load() {
					end.Store(i)
					first = err
				}
				mu.Unlock()
			}
			return nil
		})
	}
	_ = group.Wait() // first has the workers' errors
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return first
}
