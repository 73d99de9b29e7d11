package fetch

import (
	"github.com/df11-convert/df11-convert/internal/model"

	"context"
	"hash"
	"io"

	"github.com/df11-convert/df11-convert/internal/progress"
	"github.com/df11-convert/df11-convert/internal/streams"
)

// stretch is [from, end) of a file, which is read in one go; through the hash, unless that is nil.
type stretch struct {
	file      *sourceFile
	hash      hash.Hash
	from, end int64
}

// block is a piece of a file on its way from the reader through the hash to the scatterer.
type block struct {
	off     int64
	buf     []byte
	segment int // index of the segment that it lies in, -1 for none
}

// read reads a stretch in blocks that end where segments do.
func (x stretch) read(ctx context.Context, r io.Reader, p *progress.Counters, free <-chan []byte,
	out chan<- block) error {
	next := 0
	for off := x.from; off < x.end; {
		b, stop := x.cut(&next, off)
		select {
		case b.buf = <-free:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		b.buf = b.buf[:min(int64(len(b.buf)), stop-off)]
		done := p.Timed(progress.Read)
		n, err := io.ReadFull(r, b.buf)
		if done(int64(n)); err != nil {
			return model.NewReadError(x.file.File.File, err, off+int64(n))
		}
		if err := x.file.checkHeader(off, b.buf); err != nil {
			return err
		}
		off += int64(len(b.buf))
		if err := streams.Send(ctx, out, b); err != nil {
			return err
		}
	}
	return nil
}

// cut begins a block at off: it ends where the segment there ends, or where the next one begins.
// next is the first segment that is not behind off.
func (x stretch) cut(next *int, off int64) (b block, stop int64) {
	segments := x.file.segments
	for *next < len(segments) && segments[*next].End <= off {
		*next++
	}
	b = block{off: off, segment: -1}
	if *next == len(segments) {
		return b, x.end
	}
	if s := segments[*next]; off < s.Off {
		return b, min(x.end, s.Off)
	}
	b.segment = *next
	return b, min(x.end, segments[*next].End)
}

// sum adds blocks to the hash of their file. It counts them as fetched, but for the tensors of a
// file that another pass hashes.
func (x stretch) sum(ctx context.Context, p *progress.Counters, in <-chan block,
	out chan<- block) error {
	for b := range in {
		if x.hash != nil {
			done := p.Timed(progress.Hash)
			x.hash.Write(b.buf)
			done(int64(len(b.buf)))
		}
		if x.hash != nil || x.file.byRange {
			p.Fetched.Add(int64(len(b.buf)))
		}
		if err := streams.Send(ctx, out, b); err != nil {
			return err
		}
	}
	return nil
}
