package hub

import (
	"context"
	"io"
	"sync"

	"golang.org/x/sync/semaphore"
)

// turns lets the line decide how many files go at once. Few are best for a thin line, because links
// live only minutes and a kill loses what's half sent. But a file's questions take time in which it
// sends nothing. So whenever no running upload has bytes left to send while others wait for their
// turn, twice as many may go from then on. When the storage refuses a link as too old, files go one
// by one: alone, a file has the best chance to finish in time.
type turns struct {
	files *semaphore.Weighted // most files; those that may not go yet are held back

	mu      sync.Mutex
	most    int64
	now     int64 // files that may go at once
	waiting int   // files without a turn
	sending int   // requests with bytes left to send
	alone   bool
}

// firstTurns is how many files go at once until the line is known.
const firstTurns = 4

func newTurns(most int64) *turns {
	t := &turns{files: semaphore.NewWeighted(most), most: most, now: min(most, firstTurns)}
	t.files.TryAcquire(t.most - t.now)
	return t
}

// queue notes that a file will want a turn. Call its result once it has one, or never will.
func (t *turns) queue() (done func()) {
	t.count(1)
	return sync.OnceFunc(func() { t.count(-1) })
}

func (t *turns) count(by int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting += by
}

// enter waits for a file's turn. Call leave at its end.
func (t *turns) enter(ctx context.Context) (leave func(), err error) {
	t.mu.Lock()
	weight := int64(1)
	if t.alone {
		weight = t.now
	}
	t.mu.Unlock()
	if err := t.files.Acquire(ctx, weight); err != nil {
		return nil, context.Cause(ctx)
	}
	return func() { t.files.Release(weight) }, nil
}

// feed notes that a request has bytes to send. Call fed when it has none left, once or more often.
func (t *turns) feed() (fed func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sending++
	return sync.OnceFunc(func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.sending--; t.sending == 0 && t.waiting > 0 && !t.alone {
			more := min(t.now, t.most-t.now)
			t.now += more
			t.files.Release(more)
		}
	})
}

// oneByOne gives each file all turns from now on.
func (t *turns) oneByOne() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.alone = true
}

// A feeder is the body of a request. It calls fed when its last byte has been read.
type feeder struct {
	io.Reader
	left int64
	fed  func()
}

func (f *feeder) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if f.left -= int64(n); f.left <= 0 {
		f.fed()
	}
	return n, err
}
