package verify

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// parallel does n jobs in the order of their numbers, on as many workers. newWorker makes what a worker calls with the
// number of each of its jobs. The error is that of the lowest job that has one, whatever the timing; jobs behind it may be
// left out. workers <= 0 means one per processor.
func parallel(ctx context.Context, n, workers int, newWorker func() func(i int) error) error {
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
			do := newWorker()
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
