package hub

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

// turns say how many files are sent at once: as many as the caller likes, until one of them would not be done before its
// links expire. From then on, it is one at a time.
type turns struct {
	files *semaphore.Weighted

	mu      sync.Mutex
	running int
	alone   bool
}

const allTurns = 1 << 20

func newTurns() *turns { return &turns{files: semaphore.NewWeighted(allTurns)} }

// enter waits for a file's turn. Call leave at its end.
func (t *turns) enter(ctx context.Context) (leave func(), err error) {
	t.mu.Lock()
	weight := int64(1)
	if t.alone {
		weight = allTurns
	}
	t.mu.Unlock()
	if err := t.files.Acquire(ctx, weight); err != nil {
		return nil, context.Cause(ctx)
	}
	t.add(1)
	return func() { t.add(-1); t.files.Release(weight) }, nil
}

func (t *turns) add(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running += n
}

// goAlone lets files go one at a time from now on. It says whether the caller is the one to make room: the first of several
// that run.
func (t *turns) goAlone() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := !t.alone && t.running > 1
	t.alone = true
	return first
}
