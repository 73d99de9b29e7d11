package encoder

import (
	"context"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// forBlocks calls work(0) to work(n-1), each once, from the given number of goroutines and returns when all have ended. The
// first error, or the cause of ctx ending, stops the others before their next block.
func forBlocks(ctx context.Context, n, workers int, work func(b int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	for range min(max(workers, 1), n) {
		group.Go(func() error {
			for {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				b := int(next.Add(1)) - 1
				if b >= n {
					return nil
				}
				if err := work(b); err != nil {
					return err
				}
			}
		})
	}
	return group.Wait()
}
