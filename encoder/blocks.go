package encoder

import (
	"bytes"
	"context"
	"io"
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

// Memory is a source or destination that lies in memory. The encoder works on
// it without the copy that any other io.ReaderAt or io.WriterAt costs.
type Memory []byte

// ReadAt implements io.ReaderAt.
func (m Memory) ReadAt(p []byte, off int64) (int, error) {
	return bytes.NewReader(m).ReadAt(p, off)
}

// WriteAt implements io.WriterAt; the slice does not grow.
func (m Memory) WriteAt(p []byte, off int64) (int, error) {
	if off < 0 || off > int64(len(m)) || len(p) > len(m)-int(off) {
		return 0, io.ErrShortWrite
	}
	return copy(m[off:], p), nil
}
