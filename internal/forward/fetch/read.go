package fetch

import (
	"context"
	"hash"
	"io"
	"sort"

	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/progress"
	"github.com/df11-convert/df11-convert/internal/streams"
)

// stretch is [from, end) of a file, read in one go and hashed, unless hash is nil.
type stretch struct {
	file      *sourceFile
	hash      hash.Hash
	from, end int64
}

// block is a piece of a file on its way from the reader through the hash to the scatterer.
type block struct {
	off     int64
	buf     []byte
	segment int // index of its segment, or -1
}

// read reads a stretch in blocks. A block ends where its segment does.
func (x stretch) read(ctx context.Context, r io.Reader, p *progress.Counters, free <-chan []byte,
	out chan<- block) error {
	for off := x.from; off < x.end; {
		segment, stop := x.cut(off)
		b := block{off: off, segment: segment}
		select {
		case b.buf = <-free:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		b.buf = b.buf[:min(int64(len(b.buf)), stop-off)]
		done := p.Timed(progress.Read)
		n, err := io.ReadFull(r, b.buf)
		if done(0); err != nil {
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

// cut returns the segment at off, or -1 if there is none, and where a block that begins there ends:
// where the segment ends, or where the next one begins.
func (x stretch) cut(off int64) (segment int, stop int64) {
	segments := x.file.segments
	next := sort.Search(len(segments), func(i int) bool { return segments[i].End > off })
	switch {
	case next == len(segments):
		return -1, x.end
	case off < segments[next].Off:
		return -1, min(x.end, segments[next].Off)
	}
	return next, min(x.end, segments[next].End)
}

// sum adds blocks to the hash of their file.
func (x stretch) sum(ctx context.Context, p *progress.Counters, in <-chan block,
	out chan<- block) error {
	for b := range in {
		if x.hash != nil {
			done := p.Timed(progress.Hash)
			x.hash.Write(b.buf)
			done(int64(len(b.buf)))
		}
		if err := streams.Send(ctx, out, b); err != nil {
			return err
		}
	}
	return nil
}
