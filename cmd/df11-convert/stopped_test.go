package main

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/df11-convert/df11-convert/internal/hubtest"
)

// TestAStopSaysWhatIsDone stops a run at each of its last requests. If it ends well all the same,
// the next run finds nothing to do, and the program said that it converted the model. Otherwise the
// next run completes it.
func TestAStopSaysWhatIsDone(t *testing.T) {
	s := startHub(t, "hf_any")
	s.AddModel("org/model", hubtest.NewLlama(1, hubtest.ModelOptions{Hidden: 32, Vocab: 256, Layers: 1}))
	var seen, at atomic.Int64
	var stop atomic.Pointer[context.CancelCauseFunc]
	s.Inject(hubtest.Fault{Times: hubtest.Always, Action: func(x *hubtest.Exchange) {
		if seen.Add(1) == at.Load() {
			(*stop.Load())(errInterrupted)
		}
		x.Next(x.ResponseWriter)
	}})
	run := func(repo string, n int64) (code int, stdout, stderr string) {
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		stop.Store(&cancel)
		seen.Store(0)
		at.Store(n)
		u, read := captured(t)
		code = execute(ctx, u, []string{"org/model", "--push", "--repo-id", repo, "--work-dir", t.TempDir()})
		stdout, stderr = read()
		return code, stdout, stderr
	}
	if code, _, stderr := run("tester/whole", 0); code != exitOK {
		t.Fatal(stderr)
	}
	all := seen.Load()
	ended := map[int]int{}
	for n := max(1, all-24); n <= all; n++ {
		repo := fmt.Sprint("tester/stopped", n)
		code, stdout, stderr := run(repo, n)
		ended[code]++
		again, after, diag := run(repo, 0)
		switch done := strings.HasPrefix(after, "up to date: "); {
		case again != exitOK || code != exitOK && code != exitInterrupted:
			t.Errorf("stopped at request %d of %d: exit %d, then %d: %s%s", n, all, code, again, stderr, diag)
		case code != exitOK && done && strings.Contains(stderr, "0 of them published"):
			t.Errorf("stopped at request %d of %d: all was published, and it says: %s", n, all, stderr)
		case code == exitOK && (!done || !strings.Contains(stdout, repo)):
			t.Errorf("stopped at request %d of %d: it ended well with %q, and then: %s", n, all, stdout, after)
		}
	}
	if ended[exitOK] == 0 || ended[exitInterrupted] == 0 {
		t.Errorf("no run of one kind: %v", ended)
	}
}
