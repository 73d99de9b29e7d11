package forward

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/df11-convert/df11-convert/internal/ledger"
)

// committer runs commitBatches with the clock of a synctest bubble.
type committer struct {
	uploaded chan ledger.Output
	release  chan error // what each commit waits for and returns
	cancel   context.CancelCauseFunc
	group    errgroup.Group

	mu      sync.Mutex
	batches [][]string // started batches
	open    int        // running commits
	most    int        // at the same time
}

func startCommitter(t *testing.T) *committer {
	c := &committer{uploaded: make(chan ledger.Output), release: make(chan error)}
	ctx, cancel := context.WithCancelCause(t.Context())
	c.cancel = cancel
	c.group.Go(func() error { return commitBatches(ctx, CommitAge, c.uploaded, c.commit) })
	synctest.Wait()
	return c
}

func (c *committer) commit(ctx context.Context, outputs []ledger.Output) error {
	var names []string
	for _, o := range outputs {
		names = append(names, o.Path)
	}
	c.mu.Lock()
	c.batches = append(c.batches, names)
	c.open++
	c.most = max(c.most, c.open)
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.open--
	}()
	select {
	case err := <-c.release:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// upload sends the next n outputs; it returns when all are received.
func (c *committer) upload(from, n int) {
	for i := range n {
		c.uploaded <- ledger.Output{Path: fmt.Sprint(from + i)}
	}
	synctest.Wait()
}

// end closes the queue and waits until everything is committed.
func (c *committer) end(t *testing.T) {
	t.Helper()
	close(c.uploaded)
	close(c.release) // lets every commit through
	if err := c.group.Wait(); err != nil {
		t.Error(err)
	}
}

func numbers(from, n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprint(from+i))
	}
	return names
}

// begun checks how many files are in each batch so far, and that only one commit runs.
func (c *committer) begun(t *testing.T, sizes ...int) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	var got []int
	for _, b := range c.batches {
		got = append(got, len(b))
	}
	if !slices.Equal(got, sizes) || c.most > 1 {
		t.Errorf("batches of %v, want %v; %d at a time", got, sizes, c.most)
	}
}

// During a commit, outputs are still received; they go into later commits. A commit starts only
// after the previous one has ended. If more outputs wait than fit into one commit, others follow at
// once. At the end, all waiting outputs are committed without delay. Every output is in exactly one
// commit.
func TestUploadsGoOnDuringACommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const full = commitFiles
		c := startCommitter(t)
		c.upload(0, 3)
		time.Sleep(CommitAge)
		synctest.Wait()       // for the commit that starts at this moment
		c.upload(3, 2*full+7) // would wait forever if they weren't received
		time.Sleep(2 * CommitAge)
		synctest.Wait()
		c.begun(t, 3)
		for range 4 {
			c.release <- nil
			synctest.Wait()
		}
		c.upload(2*full+10, full+1)
		time.Sleep(CommitAge - time.Second)
		c.begun(t, 3, full, full, 7)
		ends := time.Now()
		c.end(t)
		c.begun(t, 3, full, full, 7, full, 1)
		if got := slices.Concat(c.batches...); !slices.Equal(got, numbers(0, 3*full+11)) {
			t.Errorf("committed: %v", got)
		}
		if waited := time.Since(ends); waited > 0 {
			t.Errorf("the last commits waited %s", waited)
		}
	})
}

// No matter how outputs arrive, none waits for its commit longer than CommitAge plus a running
// commit, and no commit starts sooner than CommitAge after the one before. The Hub counts commits.
func TestCommitsAMinute(t *testing.T) {
	for name, every := range map[string]time.Duration{
		"many a minute": CommitAge / 40, "few a minute": CommitAge / 3, "one a minute": CommitAge, "seldom": 7 * CommitAge / 2,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const n, takes = 100, 5 * time.Second // outputs, and the duration of a commit
				var began []time.Time
				first, committed := time.Now(), 0
				uploaded := make(chan ledger.Output)
				var g errgroup.Group
				g.Go(func() error {
					return commitBatches(t.Context(), CommitAge, uploaded, func(_ context.Context, batch []ledger.Output) error {
						began = append(began, time.Now())
						if waited := time.Since(first.Add(time.Duration(committed) * every)); waited > CommitAge+takes {
							t.Errorf("output %d has waited %s", committed, waited)
						}
						committed += len(batch)
						time.Sleep(takes)
						return nil
					})
				})
				for _, path := range numbers(0, n) {
					uploaded <- ledger.Output{Path: path}
					time.Sleep(every)
				}
				synctest.Wait()
				running := len(began)
				close(uploaded)
				if err := g.Wait(); err != nil || committed != n {
					t.Errorf("%d of %d were committed (%v)", committed, n, err)
				}
				for i := range running - 1 {
					if pause := began[i+1].Sub(began[i]); pause < CommitAge {
						t.Errorf("commit %d began %s after the previous one", i+1, pause)
					}
				}
			})
		})
	}
}

// The error of a commit ends the work. So does the end of the context, once the commit has ended.
func TestCommitFails(t *testing.T) {
	boom := errors.New("boom")
	begin := func(t *testing.T) *committer {
		c := startCommitter(t)
		c.upload(0, 3)
		time.Sleep(CommitAge)
		synctest.Wait() // for the commit that starts at this moment
		c.upload(3, 1)
		return c
	}
	synctest.Test(t, func(t *testing.T) {
		c := begin(t)
		c.release <- boom
		if err := c.group.Wait(); !errors.Is(err, boom) {
			t.Error(err)
		}
		c.begun(t, 3)
	})
	synctest.Test(t, func(t *testing.T) {
		c := begin(t)
		c.cancel(boom)
		close(c.uploaded)
		if err := c.group.Wait(); !errors.Is(err, boom) || c.open > 0 {
			t.Errorf("%v, %d commits are under way", err, c.open)
		}
		c.begun(t, 3)
	})
}
