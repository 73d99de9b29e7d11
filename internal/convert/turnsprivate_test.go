package convert_test

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/df11-convert/df11-convert/internal/convert"
	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/publish"
)

// closings are the ways in which everyone loses the right to read a source.
var closings = map[string]func(w *world){
	"private":  func(w *world) { w.Configure(sourceRepo, hubtest.Private()) },
	"gated":    func(w *world) { w.Configure(sourceRepo, hubtest.Gated("auto")) },
	"disabled": func(w *world) { w.Configure(sourceRepo, hubtest.Disabled()) },
	"deleted":  func(w *world) { w.RemoveRepo(sourceRepo) },
	"unclear": func(w *world) {
		w.Configure(sourceRepo, hubtest.Described(func(info map[string]any) { delete(info, "private") }))
	},
}

// eachCommits makes a run commit each output as soon as it's uploaded.
func eachCommits(o *convert.Options) { o.CommitWait = 1 }

// A witnessed run notes what a run asks about its source, and what it commits, in order.
type witnessed struct {
	mu     sync.Mutex
	n      int
	events []event
}

type event struct {
	at       int // the number of the request
	isCommit bool
}

// watch notes requests from now on, and calls change when the k-th one arrives.
func (x *witnessed) watch(w *world, k int, change func()) {
	w.Inject(hubtest.Fault{Name: "watch", Times: hubtest.Always, Action: func(e *hubtest.Exchange) {
		x.mu.Lock()
		if x.n++; x.n == k {
			change()
		}
		q := e.Request
		switch {
		case q.Method == http.MethodGet && q.URL.RawQuery == "" && strings.HasPrefix(q.URL.Path, "/api/models/"+sourceRepo+"/revision/"):
			x.events = append(x.events, event{x.n, false})
		case q.Method == http.MethodPost && strings.Contains(q.URL.Path, "/commit/"):
			x.events = append(x.events, event{x.n, true})
		}
		x.mu.Unlock()
		e.Next(e.ResponseWriter)
	}})
}

// late returns the number of commits that a run made although its last question about the source came
// after the k-th request, or that it made without a question of their own; commits is that of all.
func (x *witnessed) late(k int) (late, commits int) {
	asked := 0
	for _, e := range x.events {
		if !e.isCommit {
			asked = e.at
			continue
		}
		if commits++; asked == 0 || asked > k {
			late++
		}
		asked = 0
	}
	return late, commits
}

// TestSourceTurnsPrivate lets everyone lose the right to read a source at every moment of a run, in
// every way. If the target is public, no commit follows a question that was asked after the change,
// each commit has its question, and the error names what is public already.
func TestSourceTurnsPrivate(t *testing.T) {
	t.Parallel()
	calm, x := newWorld(t, small()), &witnessed{}
	x.watch(calm, 0, func() {})
	calm.mustConvert(t, eachCommits)
	requests := x.n
	if late, commits := x.late(requests); late > 0 || commits < 4 || calm.IsPrivate(targetRepo) {
		t.Fatalf("%d of %d commits weren't asked for", late, commits)
	}
	var ways []string
	for way := range closings {
		ways = append(ways, way)
	}
	public, stopped := 0, 0
	for k := 1; k <= requests; k++ {
		way, x := ways[k%len(ways)], &witnessed{}
		w := newWorld(t, small())
		x.watch(w, k, func() { closings[way](w) })
		_, err := w.convert(t.Context(), t, t.TempDir(), eachCommits)
		if len(w.Commits(targetRepo, "main")) == 0 || w.IsPrivate(targetRepo) {
			continue
		}
		public++
		late, commits := x.late(k)
		if late > 0 {
			t.Errorf("%s at request %d: %d of %d commits were made after a question that came later", way, k, late, commits)
		}
		if v := (*publish.VisibilityError)(nil); errors.As(err, &v) {
			stopped++
			if !v.Changed || (commits > 0) != (len(v.Shown) > 0) {
				t.Errorf("%s at request %d, %d commits: %v", way, k, commits, err)
			}
		}
	}
	if public < 10 || stopped < 10 {
		t.Errorf("of %d runs, %d published for everyone, and %d were stopped", requests, public, stopped)
	}
}

// TestRightIsAskedAfterAWait checks that a commit that the Hub lets wait is asked for again.
func TestRightIsAskedAfterAWait(t *testing.T) {
	t.Parallel()
	for way, change := range closings {
		w := newWorld(t, small())
		w.Inject(hubtest.Fault{Method: "POST", Path: anyCommit, Nth: 2, Action: func(e *hubtest.Exchange) {
			change(w)
			hubtest.Status(http.StatusTooManyRequests, hubtest.Header{"Retry-After": "3000", "RateLimit": ""}, `{"error":"later"}`)(e)
		}})
		_, err := w.convert(t.Context(), t, t.TempDir(), eachCommits)
		if v := (*publish.VisibilityError)(nil); !errors.As(err, &v) || len(w.Commits(targetRepo, "main")) != 2 {
			t.Errorf("%s: %v, %d commits", way, err, len(w.Commits(targetRepo, "main")))
		}
		if got := hint.Of(err); got != hint.Shown.With("repo", targetRepo) {
			t.Errorf("the hint is %q", got)
		}
		if way == "private" || way == "unclear" { // following it lets the run go on, if its source is there
			w.Configure(targetRepo, hubtest.Private())
			w.mustConvert(t)
		}
	}
}

// TestTargetIsOpened checks that a run stops before its next commit if someone makes a target public
// that may not be.
func TestTargetIsOpened(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]func(*convert.Options){
		"private source": func(*convert.Options) {},
		"--private":      func(o *convert.Options) { push(o).Private = new(true) },
		"--public":       func(o *convert.Options) { push(o).Private = new(false) },
	} {
		w := newWorld(t, small())
		if name == "private source" {
			w.Configure(sourceRepo, hubtest.Private())
		}
		w.Inject(hubtest.Fault{Method: "POST", Path: anyCommit, Nth: 2, Action: func(e *hubtest.Exchange) {
			e.Next(e.ResponseWriter)
			w.Configure(targetRepo, hubtest.Public())
		}})
		_, err := w.convert(t.Context(), t, t.TempDir(), eachCommits, o)
		v := (*publish.VisibilityError)(nil)
		if stopped := errors.As(err, &v); stopped != (name != "--public") || !stopped && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	// a target that its owner keeps private needs no right
	w := newWorld(t, small())
	w.AddRepo(targetRepo, nil, hubtest.Private())
	w.Inject(hubtest.Fault{Method: "POST", Path: anyCommit, Action: func(e *hubtest.Exchange) {
		w.Configure(sourceRepo, hubtest.Private())
		e.Next(e.ResponseWriter)
	}})
	w.mustConvert(t, eachCommits)
}
