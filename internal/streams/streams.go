// Package streams copies, hashes, and compares bytes, and sends values, until a context ends. It
// opens and closes nothing.
package streams

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"sync"
)

// BlockBytes is how much is read or written at a time, a multiple of every element size. Larger
// blocks weren't faster, and a dozen are in use at once.
const BlockBytes = 512 << 10

// Block is a buffer for one read or write.
type Block [BlockBytes]byte

var blocks = sync.Pool{New: func() any { return new(Block) }}

// GetBlock returns a block with undefined contents; return it with PutBlock. Thousands of reads and
// writes share a few blocks, which would otherwise be most of a conversion's garbage.
func GetBlock() *Block { return blocks.Get().(*Block) }

// PutBlock takes back a block that is no longer in use.
func PutBlock(b *Block) { blocks.Put(b) }

// contextReader fails with the context's cause once the context has ended.
type contextReader struct {
	ctx context.Context //nolint:containedctx // of the one transfer that this reader belongs to
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, context.Cause(c.ctx)
	}
	return c.r.Read(p)
}

// Send sends values, unless the context ends first.
func Send[T any](ctx context.Context, to chan<- T, values ...T) error {
	for _, v := range values {
		select {
		case to <- v:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// Copy copies r to w in blocks. It ignores the shortcuts of r and w, because each would allocate
// its own buffers.
func Copy(ctx context.Context, w io.Writer, r io.Reader) (int64, error) {
	b := GetBlock()
	defer PutBlock(b)
	return io.CopyBuffer(onlyWriter{w}, contextReader{ctx, r}, b[:])
}

// CopySection copies all bytes of a section. If the file ends before the section does, the error is
// io.ErrUnexpectedEOF.
func CopySection(ctx context.Context, w io.Writer, s *io.SectionReader) error {
	n, err := Copy(ctx, w, s)
	if err == nil && n < s.Size() {
		err = io.ErrUnexpectedEOF
	}
	return err
}

type onlyWriter struct{ io.Writer }

// SHA256 returns the SHA-256 of everything in r, in hex.
func SHA256(ctx context.Context, r io.Reader) (string, error) {
	h := sha256.New()
	if _, err := Copy(ctx, h, r); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// ReadFull fills p from off on. If the source is too short, the error is io.ErrUnexpectedEOF.
func ReadFull(r io.ReaderAt, p []byte, off int64) error {
	if n, err := r.ReadAt(p, off); n < len(p) {
		return Short(err)
	}
	return nil
}

// Short returns the error of a read that returned too few bytes: the end of the file becomes
// io.ErrUnexpectedEOF. An error that only wraps io.EOF, such as a closed connection, stays as it
// is.
func Short(err error) error {
	if err == nil || err == io.EOF { //nolint:errorlint // see above
		return io.ErrUnexpectedEOF
	}
	return err
}

// FirstDifference compares the first n bytes of a and b and returns the offset of the first
// difference, or -1.
func FirstDifference(ctx context.Context, a, b io.ReaderAt, n int64) (int64, error) {
	first, second := GetBlock(), GetBlock()
	defer PutBlock(first)
	defer PutBlock(second)
	for off := int64(0); off < n; off += BlockBytes {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		m := min(n-off, BlockBytes)
		x, y := first[:m], second[:m]
		if err := errors.Join(ReadFull(a, x, off), ReadFull(b, y, off)); err != nil {
			return 0, err
		}
		if bytes.Equal(x, y) {
			continue
		}
		i := 0
		for x[i] == y[i] {
			i++
		}
		return off + int64(i), nil
	}
	return -1, nil
}
