package encoder

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// forBlocks calls work(0) to work(n-1), each once, from the given number of goroutines and returns when all have ended.
// newWork is called once per goroutine, so that each work function has variables of its own. The first error, or the
// cause of ctx ending, stops the others before their next block.
func forBlocks(ctx context.Context, n, workers int, newWork func() func(int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	for range min(max(workers, 1), n) {
		group.Go(func() error {
			work := newWork()
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

// source reads elements through a buffer that is reused.
type source struct {
	r   io.ReaderAt
	buf []byte
}

// read returns the BF16 bytes of elements first to end-1, valid until the next call; they may be the source's own.
func (s *source) read(first, end int64) ([]byte, error) {
	off, n := 2*first, int(2*(end-first))
	if m, ok := s.r.(Memory); ok && 2*end <= int64(len(m)) {
		return m[off:][:n], nil
	}
	s.buf = grow(s.buf, n)
	got, err := s.r.ReadAt(s.buf, off)
	if got < n {
		if err == nil || err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, fmt.Errorf("read %d bytes at %d: %w", n, off, err)
	}
	return s.buf, nil
}
