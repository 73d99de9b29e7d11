package model

import (
	"cmp"
	"context"
	"io"
	"io/fs"
	"slices"
	"sync"
)

// Random reads of remote weights fetch pieces and keep the latest. If a reader goes on in order, the
// next pieces are fetched ahead. Several readers can do that at once.
const (
	largestPiece  = 4 << 20
	smallestPiece = 64 << 10
	piecesKept    = 24
	piecesAhead   = 3
)

// readers read files in pieces, and ahead until they're closed. They share one cache, and readers of
// the same piece wait for one request.
type readers struct {
	ctx        context.Context //nolint:containedctx // io.ReaderAt has no room for one; it lives as long as one command
	cancel     context.CancelCauseFunc
	pieceBytes int64
	behind     sync.WaitGroup // workers that read ahead

	mu     sync.Mutex
	pieces []*piece // the last one was read last
}

// A piece is one span of a file: its number-th.
type piece struct {
	path   string
	number int64
	ahead  sync.Once // begins to read ahead
	once   sync.Once // fetches data or err
	data   []byte
	err    error
}

// newReaders returns readers that keep at most limitBytes in memory; 0 means 96 MiB. They always
// have space for a few small pieces.
func newReaders(ctx context.Context, limitBytes int64) *readers {
	size := cmp.Or(limitBytes, piecesKept*largestPiece) / piecesKept
	r := &readers{pieceBytes: max(smallestPiece, min(size, largestPiece))}
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	return r
}

// close ends all requests. Don't use the readers afterward.
func (r *readers) close() {
	r.cancel(fs.ErrClosed)
	r.behind.Wait()
}

// get returns a piece, or an empty one instead of the oldest. inOrder reports whether the previous
// piece was read.
func (r *readers) get(path string, number int64) (p *piece, inOrder bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	oldest := 0
	for i, x := range r.pieces {
		if x.path == path && x.number == number {
			p, oldest = x, i
		}
		inOrder = inOrder || x.path == path && x.number == number-1
	}
	if p != nil || len(r.pieces) == piecesKept {
		r.pieces = slices.Delete(r.pieces, oldest, oldest+1)
	}
	if p == nil {
		p = &piece{path: path, number: number}
	}
	r.pieces = append(r.pieces, p)
	return p, inOrder
}

// drop removes pieces, so that the next reader fetches them again.
func (r *readers) drop(which func(*piece) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pieces = slices.DeleteFunc(r.pieces, which)
}

// A pieceReader reads one file in pieces. Many goroutines may use it.
type pieceReader struct {
	*readers
	path string
	ranges
}

func (r *pieceReader) ReadAt(p []byte, off int64) (int, error) {
	done := 0
	for done < len(p) {
		at := off + int64(done)
		if at >= r.size {
			return done, io.EOF
		}
		b, err := r.piece(at / r.pieceBytes)
		if err != nil {
			return done, err
		}
		done += copy(p[done:], b[at%r.pieceBytes:])
	}
	return done, nil
}

// piece returns the bytes of a piece, which are borrowed. If the reader goes on in order, it starts
// to read ahead.
func (r *pieceReader) piece(number int64) ([]byte, error) {
	p, inOrder := r.get(r.path, number)
	if inOrder {
		p.ahead.Do(func() {
			for n := number + 1; n <= number+piecesAhead && n*r.pieceBytes < r.size; n++ {
				next, _ := r.get(r.path, n)
				r.behind.Go(func() { r.fetch(next) })
			}
		})
	}
	if r.fetch(p); p.err != nil {
		r.drop(func(x *piece) bool { return x == p })
	}
	return p.data, p.err
}

// fetch reads a piece, or waits for the reader that does.
func (r *pieceReader) fetch(p *piece) {
	p.once.Do(func() {
		off := p.number * r.pieceBytes
		p.data, p.err = r.read(r.ctx, off, min(r.pieceBytes, r.size-off))
	})
}
