package verify

import (
	"cmp"
	"context"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// parallel runs jobs 0 to n-1 on that many workers, at least one, and starts them in this order. It
// returns the error of the lowest job that failed, no matter when it failed. After an error, later
// jobs may not run.
func parallel(ctx context.Context, n, workers int, do func(i int) error) error {
	errs := make([]error, n)
	group, running := errgroup.WithContext(ctx) // the first error ends it
	var begun atomic.Int64
	for range min(max(workers, 1), n) { // a goroutine per job would have to grow its stack for each
		group.Go(func() (err error) {
			for err == nil && running.Err() == nil {
				i := int(begun.Add(1)) - 1
				if i >= n {
					return nil
				}
				err = do(i)
				errs[i] = err
			}
			return err
		})
	}
	_ = group.Wait() // errs has this error, and perhaps one of a lower job
	return cmp.Or(context.Cause(ctx), cmp.Or(errs...))
}
