package sha256pair

import (
	"context"
	"crypto/sha256"
	"hash"
	"io"
)

// pieceBytes is how much of a stream is read at a time; two of them fit into a core's second-level cache.
const pieceBytes = 256 << 10

// Stream is a message that is read from its first byte to its last.
type Stream struct {
	R    io.ReaderAt
	Size int64
	// Done gets the sum, its own to keep.
	Done func(sum []byte) error

	h   hash.Hash
	off int64
}

// SumStreams hashes what next gives, two streams at a time, in the caller's goroutine. It calls next whenever there is
// room for one; other says that another stream is under way. With other, next may return nil to let that one go on alone,
// and is asked again after its next piece; without, nil ends it. An error of a reader, of next or of Done ends it at once.
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
		two[i].h, two[i].off = sha256.New(), 0
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// read reads the next piece.
func (s *Stream) read(buf []byte) ([]byte, error) {
	p := buf[:min(int64(len(buf)), s.Size-s.off)]
	if n, err := s.R.ReadAt(p, s.off); n < len(p) {
		if err == nil || err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	s.off += int64(len(p))
	return p, nil
}
