package pipeline

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

	"github.com/df11-convert/df11-convert/internal/estimate"
	"github.com/df11-convert/df11-convert/internal/ledger"
)

// committer runs commitBatches under the clock of a synctest bubble.
type committer struct {
	uploaded chan ledger.Output
	release  chan error // what each commit waits for and returns
	cancel   context.CancelCauseFunc
	group    errgroup.Group

	mu      sync.Mutex
	batches [][]string // that were begun
	open    int        // commits under way
	most    int        // at a time
}

func startCommitter(t *testing.T) *committer {
	c := &committer{uploaded: make(chan ledger.Output), release: make(chan error)}
	ctx, cancel := context.WithCancelCause(t.Context())
	c.cancel = cancel
	c.group.Go(func() error { return commitBatches(ctx, c.uploaded, c.commit) })
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

// upload hands over n outputs, numbered on; it returns when all are taken.
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

// begun checks how many files are in each batch so far, and that one commit at a time is under way.
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

// TestUploadsGoOnDuringACommit: outputs are taken while a commit is under way; they go into later ones, none of which begins
// before the one before it has ended. Every output is in one.
func TestUploadsGoOnDuringACommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const full = estimate.CommitFiles
		c := startCommitter(t)
		c.upload(0, 3*full+7) // would wait for ever if they were not taken
		c.begun(t, full)
		c.release <- nil
		synctest.Wait()
		c.begun(t, full, full)
		c.end(t)
		c.begun(t, full, full, full, 7)
		if got := slices.Concat(c.batches...); !slices.Equal(got, numbers(0, 3*full+7)) {
			t.Errorf("committed: %v", got)
		}
	})
}

// TestBatchIsCommittedByAge: an output waits for its commit no longer than batchAge, though no other comes, also if it came
// during a commit that took longer than that.
func TestBatchIsCommittedByAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const full = estimate.CommitFiles
		c := startCommitter(t)
		c.upload(0, 1)
		time.Sleep(batchAge - time.Second)
		c.upload(1, 1)
		c.begun(t)
		time.Sleep(time.Second)
		synctest.Wait()
		c.begun(t, 2)
		c.upload(2, full+3)
		time.Sleep(2 * batchAge)
		c.release <- nil
		synctest.Wait()
		c.begun(t, 2, full)
		c.release <- nil
		time.Sleep(batchAge)
		synctest.Wait()
		c.begun(t, 2, full, 3)
		c.end(t)
	})
}

// TestCommitFails: the error of a commit ends the work; so does the end of the context, once the commit has ended.
func TestCommitFails(t *testing.T) {
	boom := errors.New("boom")
	synctest.Test(t, func(t *testing.T) {
		c := startCommitter(t)
		c.upload(0, estimate.CommitFiles+1)
		c.release <- boom
		if err := c.group.Wait(); !errors.Is(err, boom) {
			t.Error(err)
		}
		c.begun(t, estimate.CommitFiles)
	})
	synctest.Test(t, func(t *testing.T) {
		c := startCommitter(t)
		c.upload(0, estimate.CommitFiles+1)
		c.cancel(boom)
		close(c.uploaded)
		if err := c.group.Wait(); !errors.Is(err, boom) || c.open > 0 {
			t.Errorf("%v, %d commits are under way", err, c.open)
		}
		c.begun(t, estimate.CommitFiles)
	})
}
