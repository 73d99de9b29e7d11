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
	// Done, for SumStreams only, gets the sum, its own to keep.
	Done func(sum []byte) error

	h   hash.Hash
	off int64
}

// SumReaders hashes two streams side by side in the caller's goroutine, each to its own end. It reads them in pieces, so
// that memory does not depend on their sizes. Done is not called.
func SumReaders(ctx context.Context, a, b Stream) (sumA, sumB []byte, err error) {
	a.begin()
	b.begin()
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

// SumStreams hashes the streams that next returns, two at a time, in the caller's goroutine. It calls next whenever there
// is room for a stream; other says that another stream is under way. With other, next may return nil to let the other
// stream go on alone, and is asked again after the next piece of that stream; without other, nil ends SumStreams. An error
// of a reader, of next or of Done ends it at once.
func SumStreams(ctx context.Context, next func(ctx context.Context, other bool) (*Stream, error)) error {
	var two [2]*Stream
	var bufs [2][]byte
	for {
		if err := fill(ctx, &two, next); err != nil || two[0] == nil {
			return err
		}
		var pieces [2][]byte
		for i, s := range two {
			if s == nil {
				continue
			}
			if bufs[i] == nil {
				bufs[i] = make([]byte, pieceBytes)
			}
			var err error
			if pieces[i], err = s.read(bufs[i]); err != nil {
				return err
			}
		}
		if two[1] == nil {
			two[0].h.Write(pieces[0])
		} else {
			Write(two[0].h, two[1].h, pieces[0], pieces[1])
		}
		for i, s := range two {
			if s == nil || s.off < s.Size {
				continue
			}
			if err := s.Done(s.h.Sum(nil)); err != nil {
				return err
			}
			two[i] = nil
		}
	}
}

// fill asks for streams where there is room. The first place is taken if any is.
func fill(ctx context.Context, two *[2]*Stream, next func(context.Context, bool) (*Stream, error)) (err error) {
	if two[0] == nil {
		two[0], two[1] = two[1], nil
	}
	for i := range two {
		if two[i] != nil {
			continue
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if two[i], err = next(ctx, i > 0); err != nil || two[i] == nil {
			return err
		}
		two[i].begin()
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

func (s *Stream) begin() { s.h, s.off = sha256.New(), 0 }

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
