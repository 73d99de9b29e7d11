package verify

import (
	"cmp"
	"context"
	"runtime"

	"golang.org/x/sync/errgroup"
)

// parallel does jobs 0 to n-1, which it begins in this order, on as many goroutines as workers
// says; workers <= 0 means one per processor. The error is that of the lowest job with an error,
// whatever the timing; later jobs may be left out.
func parallel(ctx context.Context, n, workers int, do func(i int) error) error {
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	errs := make([]error, n)
	group, running := errgroup.WithContext(ctx) // ends with the first error
	group.SetLimit(workers)
	for i := 0; i < n && running.Err() == nil; i++ {
		group.Go(func() error {
			errs[i] = do(i)
			return errs[i]
		})
	}
	_ = group.Wait() // errs has that error, and perhaps one of a lower job
	return cmp.Or(context.Cause(ctx), cmp.Or(errs...))
}
