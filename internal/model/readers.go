package model

import (
	"cmp"
	"container/list"
	"context"
	"io"
	"io/fs"
	"slices"
	"sync"

	"github.com/df11-convert/df11-convert/hub"
)

// A file of the Hub that is read at random is fetched in pieces. A header or a table lies in a small piece; a reader that goes
// on in order gets larger and larger ones. The latest pieces are kept within a limit. With a lower limit pieces are smaller,
// so that several readers can go on side by side without losing what was read ahead for them.
const (
	smallestPiece = 64 << 10
	largestPiece  = 4 << 20
	piecesBytes   = 96 << 20                   // the default limit
	piecesKept    = piecesBytes / largestPiece // how many of the largest pieces the limit has room for
	aheadShare    = 4                          // reading ahead begins at a piece of a quarter of the largest size
	piecesAhead   = 3                          // how many pieces are read ahead
)

// Readers read files of the Hub at random, and read ahead until they are closed. They share one cache of pieces; readers of the
// same piece wait for one request.
type Readers struct {
	ctx    context.Context //nolint:containedctx // io.ReaderAt has no room for one; the value lives as long as one command
	cancel context.CancelCauseFunc
	client *hub.Client
	behind sync.WaitGroup // reading ahead

	mu     sync.Mutex
	files  map[string][]*piece // by path; in the order of offsets, without overlaps
	order  list.List           // of *piece; the one at the back is the first to be dropped
	limit  int64               // of nBytes
	nBytes int64               // of all pieces
}

// piece is one span of a file. Its offset is a multiple of smallestPiece, and so is its length unless the file ends there.
type piece struct {
	path   string
	off, n int64
	place  *list.Element // nil once the piece is dropped
	long   bool          // so large that its reader must have gone on in order for a while
	ahead  sync.Once     // begins to read ahead
	once   sync.Once     // fetches data or err
	data   []byte
	err    error
}

// NewReaders makes readers that keep at most limitBytes in memory; 0 is 96 MiB.
func NewReaders(ctx context.Context, c *hub.Client, limitBytes int64) *Readers {
	r := &Readers{client: c, files: map[string][]*piece{}}
	r.setLimit(cmp.Or(limitBytes, piecesBytes))
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	return r
}

// Open makes the reader of one file. It is safe for concurrent use.
func (r *Readers) Open(ref hub.FileRef) io.ReaderAt { return &pieceReader{r, ref} }

// Close ends all requests that are under way. The readers must not be used any more.
func (r *Readers) Close() error {
	r.cancel(fs.ErrClosed)
	r.behind.Wait()
	return nil
}

// get finds the piece that holds the byte at off, or makes an empty piece. A new piece has room for want bytes. If it begins
// where another piece ends, it is at least twice as long as that piece. It never overlaps the next piece. off must lie in the
// file.
func (r *Readers) get(path string, size, off, want int64) *piece {
	r.mu.Lock()
	defer r.mu.Unlock()
	start := off - off%smallestPiece
	all := r.files[path]
	i, found := slices.BinarySearchFunc(all, start, func(p *piece, at int64) int { return cmp.Compare(p.off, at) })
	if !found && i > 0 && all[i-1].off+all[i-1].n > off {
		i, found = i-1, true
	}
	if found {
		r.order.MoveToFront(all[i].place)
		return all[i]
	}
	n := (off - start + want + smallestPiece - 1) / smallestPiece * smallestPiece
	grown := i > 0 && all[i-1].off+all[i-1].n == start
	if grown {
		n = max(n, 2*all[i-1].n)
	}
	end := min(start+min(n, r.largest()), size)
	if i < len(all) {
		end = min(end, all[i].off)
	}
	p := &piece{path: path, off: start, n: end - start}
	p.long = grown && p.n >= r.largest()/aheadShare
	p.place = r.order.PushFront(p)
	r.files[path] = slices.Insert(all, i, p)
	r.nBytes += p.n
	for r.nBytes > r.limit {
		r.remove(r.order.Back().Value.(*piece))
	}
	return p
}

// largest is the size of the largest pieces under the limit.
func (r *Readers) largest() int64 {
	return max(smallestPiece, min(largestPiece, r.limit/piecesKept)/smallestPiece*smallestPiece)
}

// setLimit changes how much the cache keeps; there is always room for a few small pieces.
func (r *Readers) setLimit(nBytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.limit = max(nBytes, piecesKept*smallestPiece)
}

// passed makes a piece that was read to its end the next to be dropped, since its reader goes on and does not come back.
func (r *Readers) passed(p *piece) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p.place != nil {
		r.order.MoveToBack(p.place)
	}
}

// forget drops all pieces of a file.
func (r *Readers) forget(path string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range slices.Clone(r.files[path]) {
		r.remove(p)
	}
}

// drop forgets a piece that could not be read, so that the next reader tries again.
func (r *Readers) drop(p *piece) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.remove(p)
}

// remove takes a piece out. The lock is held.
func (r *Readers) remove(p *piece) {
	if p.place == nil {
		return
	}
	r.order.Remove(p.place)
	p.place = nil
	r.nBytes -= p.n
	r.files[p.path] = slices.DeleteFunc(r.files[p.path], func(q *piece) bool { return q == p })
}

// pieceReader reads one file by pieces.
type pieceReader struct {
	*Readers
	ref hub.FileRef
}

func (r *pieceReader) ReadAt(p []byte, off int64) (int, error) {
	done := 0
	for done < len(p) {
		at := off + int64(done)
		if at >= r.ref.Size {
			return done, io.EOF
		}
		b, err := r.from(at, int64(len(p)-done))
		if err != nil {
			return done, err
		}
		done += copy(p[done:], b)
	}
	return done, nil
}

// from gives bytes of the file from off on: at least one, and perhaps fewer than wanted. They are borrowed.
func (r *pieceReader) from(off, want int64) ([]byte, error) {
	p := r.get(r.ref.Path, r.ref.Size, off, want)
	if p.long {
		p.ahead.Do(func() { r.readAhead(p) })
	}
	r.fetch(p)
	if p.err != nil {
		r.drop(p)
		return nil, p.err
	}
	if off+want >= p.off+p.n {
		r.passed(p)
	}
	return p.data[off-p.off:], nil
}

// fetch reads a piece, or waits for the reader that does.
func (r *pieceReader) fetch(p *piece) {
	p.once.Do(func() { p.data, p.err = r.client.ReadRange(r.ctx, r.ref, p.off, p.n) })
}

// readAhead begins to fetch the pieces behind p.
func (r *pieceReader) readAhead(p *piece) {
	for range piecesAhead {
		end := p.off + p.n
		if end >= r.ref.Size {
			return
		}
		next := r.get(r.ref.Path, r.ref.Size, end, 1)
		r.behind.Go(func() { r.fetch(next) })
		p = next
	}
}
