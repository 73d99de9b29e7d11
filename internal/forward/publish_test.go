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

	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/ledger"
)

// No matter how outputs arrive, all are committed, in order, each once, and in batches that the Hub
// takes. None waits for its commit longer than CommitAge plus a running commit, and until the end,
// no commit that isn't full starts sooner than CommitAge after the one before. The Hub counts commits.
func TestCommitsAMinute(t *testing.T) {
	for name, every := range map[string]time.Duration{
		"all at once": time.Millisecond, "many a minute": CommitAge / 40, "few a minute": CommitAge / 3,
		"one a minute": CommitAge, "seldom": 7 * CommitAge / 2,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const n, takes = 2*commitFiles + 7, 5 * time.Second // outputs, and the duration of a commit
				var began []time.Time
				var sizes []int
				var committed []string
				first := time.Now()
				uploaded := make(chan ledger.Output, commitFiles)
				var g errgroup.Group
				g.Go(func() error {
					return commitBatches(t.Context(), CommitAge, uploaded, func(_ context.Context, batch []ledger.Output) error {
						began, sizes = append(began, time.Now()), append(sizes, len(batch))
						if waited := time.Since(first.Add(time.Duration(len(committed)) * every)); waited > CommitAge+3*takes {
							t.Errorf("output %d has waited %s", len(committed), waited)
						}
						for _, o := range batch {
							committed = append(committed, o.Path)
						}
						if len(batch) > commitFiles {
							t.Errorf("%d outputs in a commit", len(batch))
						}
						time.Sleep(takes)
						return nil
					})
				})
				var sent []string
				for i := range n {
					sent = append(sent, fmt.Sprint(i))
					uploaded <- ledger.Output{Path: sent[i]}
					time.Sleep(every)
				}
				synctest.Wait()
				running := len(began)
				close(uploaded)
				if err := g.Wait(); err != nil || !slices.Equal(committed, sent) {
					t.Errorf("%d of %d were committed (%v)", len(committed), n, err)
				}
				for i := range running - 1 {
					if wait := began[i+1].Sub(began[i]); wait < CommitAge && sizes[i+1] < commitFiles {
						t.Errorf("commit %d began %s after the previous one", i+1, wait)
					}
				}
			})
		})
	}
}

// The error of a commit ends the work. So does the end of the context.
func TestCommitFails(t *testing.T) {
	boom := errors.New("boom")
	for _, fails := range []error{boom, nil} {
		ctx, cancel := context.WithCancelCause(t.Context())
		uploaded := make(chan ledger.Output, 1)
		uploaded <- ledger.Output{}
		err := commitBatches(ctx, 0, uploaded, func(context.Context, []ledger.Output) error {
			cancel(boom)
			close(uploaded)
			return fails
		})
		if !errors.Is(err, boom) {
			t.Errorf("a commit that ends with %v: %v", fails, err)
		}
	}
}

// Many small files go at once, but of large ones only two, because finished files wait on the disk.
func TestUploadsAtOnce(t *testing.T) {
	for _, tt := range []struct {
		size int64
		want int
	}{{1, budget.Uploads}, {budget.UploadBytes / 8, 8}, {budget.UploadBytes / 2, 2}, {10 * budget.UploadBytes, 2}} {
		synctest.Test(t, func(t *testing.T) {
			finished, uploaded := make(chan ledger.Output), make(chan ledger.Output, commitFiles)
			running, most := 0, 0
			var mu sync.Mutex
			count := func(by int) {
				mu.Lock()
				defer mu.Unlock()
				running += by
				most = max(most, running)
			}
			var g errgroup.Group
			g.Go(func() error {
				return uploadAll(t.Context(), finished, uploaded, func(_ context.Context, o ledger.Output) (ledger.Output, error) {
					count(1)
					defer count(-1)
					time.Sleep(time.Second)
					return o, nil
				})
			})
			for range 40 {
				finished <- ledger.Output{Size: tt.size}
			}
			close(finished)
			n := 0
			for range uploaded {
				n++
			}
			if err := g.Wait(); err != nil || n != 40 || most != tt.want {
				t.Errorf("%d bytes each: %d of 40, %d at once, %v", tt.size, n, most, err)
			}
		})
	}
}
