package hub_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/hubtest"
)

// The calls of the table. Each has its own world.
var (
	info     = faultCall{size: 100, run: func(t *testing.T, w *world) error { _, err := w.Info(t.Context(), source, "main"); return err }}
	oneRange = faultCall{size: 3000, run: func(t *testing.T, w *world) error { return w.stream(t) }}
	// three of them
	ranges = faultCall{size: 10_000, run: func(t *testing.T, w *world) error { return w.stream(t) }}
	onePut = faultCall{size: 15_000, publishes: true, run: pushAndCheck}
	parts  = faultCall{size: 50_000, publishes: true, run: pushAndCheck} // seven of them
)

type faultCall struct {
	size      int
	publishes bool
	run       func(*testing.T, *world) error
}

func pushAndCheck(t *testing.T, w *world) error {
	done, err := w.push(t, weight, w.data)
	if err == nil {
		w.holds(t, weight, w.data)
		if made := len(w.srv.Commits(target, "main")); made != 2 || done.OID != w.srv.Head(target, "main") {
			t.Errorf("%d commits visible, %+v", made-1, done)
		}
	}
	return err
}

// begin makes the world of a call.
func (c faultCall) begin(t *testing.T) *world {
	if !c.publishes {
		return newWorld(t, c.size)
	}
	w := published(t)
	w.data = pattern(c.size)
	return w
}

// asked counts the requests to a hub and its storage.
type asked struct{ infos, heads, gets, batches, puts, commits int }

const open = -1 // the number depends on chance, or on how long is tried

// matches compares the counts with those wanted.
func (got asked) matches(want asked) bool {
	same := func(got, want int) bool { return want == open || got == want }
	return same(got.infos, want.infos) && same(got.heads, want.heads) && same(got.gets, want.gets) &&
		same(got.batches, want.batches) && same(got.puts, want.puts) && same(got.commits, want.commits)
}

// asked returns the counts of a call, without the reads of the branch after a commit.
func (c faultCall) asked(w *world) asked {
	got := asked{0, w.nHeads(), w.nGets(), w.nBatches(), w.nPuts(), w.nCommits()}
	if !c.publishes {
		got.infos = w.srv.Count("GET", "/api/models/*/revision/*")
	}
	return got
}

var errAny = errors.New("any error")

// Waits: none if a repeat can't help, seconds if it does, and more if a fault stays.
const (
	atOnce    = 0
	briefly   = 30 * time.Second
	patiently = 100 * time.Minute
)

// TestFaults checks faults of a hub or its storage, once or forever, during a call: how many
// requests of each kind are sent, how long the client waits, and how the call ends. TestRepeats has
// those that hit any request.
func TestFaults(t *testing.T) {
	const once, always = 1, hubtest.Always
	for _, tt := range []struct {
		call  faultCall
		fault string
		times int
		want  error // nil is success
		asked asked
		waits time.Duration // at most
	}{
		{info, "503", once, nil, asked{infos: 2}, briefly},
		{info, "hub-reset", once, nil, asked{infos: 2}, briefly},
		{info, "429-retry-after", always, hub.ErrRateLimited, asked{infos: open}, patiently},

		{oneRange, "etag-changed", always, hub.ErrChanged, asked{heads: 1}, atOnce},
		{oneRange, "commit-changed", always, hub.ErrChanged, asked{heads: 1}, atOnce},
		{oneRange, "size-changed", always, hub.ErrChanged, asked{heads: 1}, atOnce},
		{oneRange, "no-commit", always, hub.ErrNotHub, asked{heads: 1}, atOnce},
		{oneRange, "redirect-loop", always, hub.ErrNotHub, asked{heads: 10}, atOnce},
		{oneRange, "redirect-host", always, hub.ErrNotHub, asked{heads: 1}, atOnce},
		{oneRange, "redirect-port", always, hub.ErrNotHub, asked{heads: 1}, atOnce},
		{oneRange, "redirect-scheme", always, hub.ErrNotHub, asked{heads: 1}, atOnce},
		{oneRange, "entry-404", always, hub.ErrEntryNotFound, asked{heads: 1}, atOnce},

		{ranges, "cdn-500", once, nil, asked{heads: 1, gets: 4}, briefly},
		{ranges, "cdn-503", once, nil, asked{heads: 1, gets: 4}, briefly},
		{ranges, "reset", once, nil, asked{heads: 1, gets: 4}, briefly},
		{ranges, "cut", once, nil, asked{heads: 1, gets: 4}, briefly},
		// each connection brings 1000 bytes, which is progress
		{ranges, "cut", always, nil, asked{heads: open, gets: 10}, briefly},
		{ranges, "short", once, nil, asked{heads: 1, gets: 4}, briefly},
		{ranges, "chunked", once, nil, asked{heads: 1, gets: 4}, briefly},
		{oneRange, "ignore-range", once, nil, asked{heads: 1, gets: 1}, atOnce},
		// helps the first range only
		{ranges, "ignore-range", once, nil, asked{heads: 1, gets: open}, briefly},
		{ranges, "wrong-range", once, nil, asked{heads: 1, gets: 4}, briefly},
		{ranges, "gzip", once, nil, asked{heads: 1, gets: 4}, briefly},
		{ranges, "expired", once, nil, asked{heads: 2, gets: 4}, briefly},
		{oneRange, "cdn-500", always, errAny, asked{heads: open, gets: open}, patiently},
		{oneRange, "reset", always, errAny, asked{heads: open, gets: open}, patiently},
		{oneRange, "wrong-range", always, errAny, asked{heads: open, gets: open}, patiently},
		{oneRange, "gzip", always, errAny, asked{heads: open, gets: open}, patiently},
		{oneRange, "expired", always, errAny, asked{heads: open, gets: open}, patiently},
		{oneRange, "400-range", always, errAny, asked{heads: 1, gets: 1}, atOnce},
		{oneRange, "416", always, hub.ErrChanged, asked{heads: 1, gets: 1}, atOnce},

		{onePut, "batch-500", once, nil, asked{batches: 2, puts: 1, commits: 1}, briefly},
		{onePut, "lfs-429", once, nil, asked{batches: 2, puts: 1, commits: 1}, briefly},
		{onePut, "lfs-503", once, nil, asked{batches: 2, puts: 1, commits: 1}, briefly},
		{onePut, "put-500", once, nil, asked{batches: 1, puts: 2, commits: 1}, briefly},
		{onePut, "put-503", once, nil, asked{batches: 1, puts: 2, commits: 1}, briefly},
		{onePut, "put-timeout", once, nil, asked{batches: 1, puts: 2, commits: 1}, briefly},
		{onePut, "put-expired", once, nil, asked{batches: 2, puts: 2, commits: 1}, briefly},
		{onePut, "put-token", once, nil, asked{batches: 2, puts: 2, commits: 1}, briefly},
		{onePut, "put-reset", once, nil, asked{batches: 1, puts: 2, commits: 1}, briefly},
		{onePut, "put-reset-after", once, nil, asked{batches: 1, puts: 2, commits: 1}, briefly},
		{onePut, "verify-500", once, nil, asked{batches: 1, puts: 1, commits: 1}, briefly},
		{parts, "put-reset-after", once, nil, asked{batches: 1, puts: 8, commits: 1}, briefly},
		// some parts run before all are stopped
		{parts, "put-expired", once, nil, asked{batches: 2, puts: open, commits: 1}, briefly},
		{parts, "put-no-upload", once, nil, asked{batches: 2, puts: open, commits: 1}, briefly},
		{parts, "put-wrong-etag", once, nil, asked{batches: 2, puts: 14, commits: 1}, briefly},
		{parts, "complete-400", once, nil, asked{batches: 2, puts: 14, commits: 1}, briefly},
		{parts, "complete-500", once, nil, asked{batches: 1, puts: 7, commits: 1}, briefly},
		{parts, "complete-after", once, nil, asked{batches: 1, puts: 7, commits: 1}, briefly},
		{parts, "verify-500", once, nil, asked{batches: 1, puts: 7, commits: 1}, briefly},
		{onePut, "batch-500", always, errAny, asked{batches: open}, patiently},
		{onePut, "batch-quota", always, hub.ErrQuota, asked{batches: 1}, atOnce},
		{onePut, "lfs-quota", always, hub.ErrQuota, asked{batches: 1}, atOnce},
		{onePut, "lfs-error", always, errAny, asked{batches: 1}, atOnce},
		{onePut, "lfs-503", always, errAny, asked{batches: open}, patiently},
		{onePut, "lfs-429", always, hub.ErrRateLimited, asked{batches: open}, patiently},
		{parts, "lfs-part-count", always, hub.ErrNotHub, asked{batches: 1}, atOnce},
		{parts, "lfs-chunk-size", always, hub.ErrNotHub, asked{batches: 1}, atOnce},
		{parts, "lfs-chunk-zero", always, hub.ErrNotHub, asked{batches: 1}, atOnce},
		{onePut, "put-500", always, errAny, asked{batches: 1, puts: open}, patiently},
		{onePut, "put-expired", always, errAny, asked{batches: open, puts: open}, patiently},
		{parts, "put-no-upload", always, errAny, asked{batches: open, puts: open}, patiently},
		{parts, "complete-500", always, errAny, asked{batches: 1, puts: 7}, patiently},
		{onePut, "verify-mismatch", always, hub.ErrCorrupt, asked{batches: 1, puts: 1}, atOnce},

		{onePut, "commit-412", once, nil, asked{batches: 1, puts: 1, commits: 2}, briefly},
		{onePut, "commit-409", once, nil, asked{batches: 1, puts: 1, commits: 2}, briefly},
		{onePut, "commit-500", once, nil, asked{batches: 1, puts: 1, commits: 2}, briefly},
		{onePut, "commit-500-after", once, nil, asked{batches: 1, puts: 1, commits: 1}, briefly},
		{onePut, "commit-504-after", once, nil, asked{batches: 1, puts: 1, commits: 1}, briefly},
		{onePut, "commit-reset-after", once, nil, asked{batches: 1, puts: 1, commits: 1}, briefly},
		{onePut, "commit-429", once, nil, asked{batches: 1, puts: 1, commits: 2}, briefly},
		{onePut, "commit-race", once, hub.ErrConflict, asked{batches: 1, puts: 1, commits: 1}, atOnce},
		{onePut, "commit-quota", once, hub.ErrQuota, asked{batches: 1, puts: 1, commits: 1}, atOnce},
		{onePut, "commit-400-lfs", once, hub.ErrMissingObject, asked{batches: 1, puts: 1, commits: 1}, atOnce},
		// the hub claims what it lacks
		{onePut, "lfs-no-actions", once, hub.ErrMissingObject, asked{batches: 1, commits: 1}, atOnce},
		{onePut, "commit-412", always, errAny, asked{batches: 1, puts: 1, commits: open}, patiently},
		{onePut, "commit-500", always, errAny, asked{batches: 1, puts: 1, commits: open}, patiently},
	} {
		t.Run(fmt.Sprintf("%s-%d-%d", tt.fault, tt.call.size, tt.times), func(t *testing.T) {
			w := tt.call.begin(t)
			w.srv.Inject(hubtest.Fault{Name: tt.fault, Times: tt.times})
			err := tt.call.run(t, w)
			noSecret(t, err)
			if (err == nil) != (tt.want == nil) || !errors.Is(tt.want, errAny) && !errors.Is(err, tt.want) {
				t.Errorf("%v, want %v", err, tt.want)
			}
			if got := tt.call.asked(w); !got.matches(tt.asked) || got.gets > 60 {
				t.Errorf("asked %+v, want %+v", got, tt.asked)
			}
			if acted := w.srv.FaultsActed(tt.fault); acted == 0 || tt.times == once && acted != 1 {
				t.Errorf("the fault acted %d times", acted)
			}
			if waited := w.clock.Waited(); waited > tt.waits {
				t.Errorf("waited %v, at most %v is expected", waited, tt.waits)
			}
		})
	}
}
