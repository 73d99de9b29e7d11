package sha256pair

import (
	"context"
	"crypto/sha256"
	"hash"
	"io"
)

// pieceBytes is how much of a stream is read at a time; two of them fit into a core's second-level cache.
const pieceBytes = 256 << 10

// Stream is a message that is read from its first byte to its last. The zero value is an empty message.
type Stream struct {
	R    io.ReaderAt
	Size int64

	h   hash.Hash
	off int64
}

// SumReaders hashes two streams side by side in the caller's goroutine, each to its own end. It reads them in pieces, so
// that memory does not depend on their sizes.
func SumReaders(ctx context.Context, a, b Stream) (sumA, sumB []byte, err error) {
	a.h, b.h = sha256.New(), sha256.New()
	bufA, bufB := make([]byte, min(pieceBytes, a.Size)), make([]byte, min(pieceBytes, b.Size))
	for a.off < a.Size || b.off < b.Size {
		if ctx.Err() != nil {
			return nil, nil, context.Cause(ctx)
		}
		p, err := a.read(bufA)
		if err != nil {
			return nil, nil, err
		}
		q, err := b.read(bufB)
		if err != nil {
			return nil, nil, err
		}
		Write(a.h, b.h, p, q)
	}
	return a.h.Sum(nil), b.h.Sum(nil), nil
}

// read reads the next piece; at the end it is empty.
func (s *Stream) read(buf []byte) ([]byte, error) {
	p := buf[:min(int64(len(buf)), s.Size-s.off)]
	if len(p) == 0 {
		return p, nil
	}
	if n, err := s.R.ReadAt(p, s.off); n < len(p) {
		if err == nil || err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	s.off += int64(len(p))
	return p, nil
}
