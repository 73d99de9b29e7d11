package pipeline_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/target"
	"github.com/df11-convert/df11-convert/pipeline"
)

const anyCommit = "/api/models/*/commit/*"

// proposal is a world whose conversions go to a pull request on a target that exists.
func proposal(t *testing.T, m *hubtest.Model, opts ...hubtest.Option) *world {
	t.Helper()
	w := newWorld(t, m, opts...)
	w.AddRepo(targetRepo, map[string][]byte{"notes.txt": []byte("theirs")})
	w.change = append(w.change, func(o *pipeline.Options) { o.Push.CreatePR = true })
	return w
}

// onePR checks that there is one pull request, which holds the whole conversion, and that main has not moved.
func onePR(t *testing.T, w *world, want map[string]hubtest.File, main string) {
	t.Helper()
	if refs := w.Refs(targetRepo); len(refs) != 2 || w.Head(targetRepo, "main") != main {
		t.Errorf("refs %v, main was at %s", refs, main)
	}
	sameFiles(t, without(w.Files(targetRepo, "refs/pr/1")), want)
}

// without leaves out what the conversion does not write.
func without(files map[string]hubtest.File) map[string]hubtest.File {
	for _, p := range []string{".gitattributes", "notes.txt"} {
		delete(files, p)
	}
	return files
}

// TestKilledPullRequestIsResumed: a run that opens a pull request is ended at one of its commits; the next one, on an
// empty disk, goes on in the same pull request and does nothing twice that is committed.
func TestKilledPullRequestIsResumed(t *testing.T) {
	t.Parallel()
	want := without(reference(t, deep()))
	refused := func(stop func()) hubtest.Action {
		return func(x *hubtest.Exchange) { stop(); hubtest.Error(503, "", "")(x) }
	}
	conflict := func(stop func()) hubtest.Action {
		return func(x *hubtest.Exchange) { stop(); hubtest.Error(412, "", "A commit has happened since.")(x) }
	}
	unanswered := func(stop func()) hubtest.Action {
		return hubtest.After(func(x *hubtest.Exchange) { stop(); hubtest.Reset()(x) })
	}
	for name, tt := range map[string]struct {
		nth  int
		last func(stop func()) hubtest.Action
		open bool // the pull request is there when the run ends
	}{
		"before it is opened":               {1, refused, false},
		"after it was opened, not answered": {1, unanswered, true},
		"at the second commit":              {2, refused, true},
		"after the second commit":           {2, unanswered, true},
		"at the last commit":                {3, refused, true},
		"after the last commit, unanswered": {3, unanswered, true},
		"at a conflict":                     {1, conflict, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := proposal(t, deep())
			main := w.Head(targetRepo, "main")
			interrupted(t, w, t.TempDir(), func(stop func()) {
				w.Inject(hubtest.Fault{Method: "POST", Path: anyCommit, Nth: tt.nth, Action: tt.last(stop)})
			})
			if _, open := w.Refs(targetRepo)["refs/pr/1"]; open != tt.open {
				t.Fatalf("refs %v", w.Refs(targetRepo))
			}
			committed := weightFiles(w.Files(targetRepo, "refs/pr/1"))
			w.log.take()
			r := w.mustConvert(t)
			if twice := both(w.log.take(), committed); len(twice) > 0 {
				t.Errorf("converted twice: %v", twice)
			}
			onePR(t, w, want, main)
			if r.URL != w.URL+"/"+targetRepo+"/discussions/1" {
				t.Errorf("url %s", r.URL)
			}
		})
	}
}

// TestPullRequestFaults: what happens to the answer of the commit that opens a pull request does not make it two.
func TestPullRequestFaults(t *testing.T) {
	t.Parallel()
	want := without(reference(t, small()))
	for _, fault := range []string{"commit-500", "commit-500-after", "commit-504-after", "commit-reset-after", "commit-429", "commit-412"} {
		w := proposal(t, small())
		main := w.Head(targetRepo, "main")
		w.Inject(hubtest.Fault{Name: fault})
		w.mustConvert(t)
		onePR(t, w, want, main)
		if w.FaultsActed(fault) != 1 {
			t.Errorf("%s did not act", fault)
		}
	}
}

// TestFinishedPullRequestIsNotDoneAgain: while the pull request waits for somebody to merge it, and after that, another
// run changes nothing.
func TestFinishedPullRequestIsNotDoneAgain(t *testing.T) {
	w := proposal(t, small())
	w.mustConvert(t)
	head := w.Head(targetRepo, "refs/pr/1")
	w.log.take()
	if r := w.mustConvert(t); !strings.HasSuffix(r.URL, "/discussions/1") || w.Head(targetRepo, "refs/pr/1") != head {
		t.Errorf("url %s, the pull request was at %s", r.URL, head)
	}
	if again := w.log.take(); len(again) > 0 || len(w.Refs(targetRepo)) != 2 {
		t.Errorf("converted again: %v; refs %v", again, w.Refs(targetRepo))
	}
}

// TestForeignPullRequest: neither another person's pull request of the same title nor one of ours that was closed or is of
// another plan is gone on with.
func TestForeignPullRequest(t *testing.T) {
	w := proposal(t, small(), hubtest.WithUser(testToken, hubtest.User{Name: "me"}), hubtest.WithUser("hf_guest", hubtest.User{Name: "guest"}))
	main := w.Head(targetRepo, "main")
	guest := func(o *hub.Options) { o.Token = "hf_guest" }
	w.hub = append(w.hub, guest)
	w.mustConvert(t) // refs/pr/1 of the guest
	w.hub = nil
	w.mustConvert(t) // refs/pr/2
	w.ClosePullRequest(targetRepo, 2)
	w.mustConvert(t) // refs/pr/3
	w.Push(sourceRepo, "main", map[string][]byte{"NOTICE": []byte("new")})
	w.mustConvert(t) // refs/pr/4
	if refs := w.Refs(targetRepo); len(refs) != 5 || refs["refs/heads/main"] != main {
		t.Errorf("refs %v", refs)
	}
	want := without(w.Files(targetRepo, "refs/pr/1"))
	for _, pr := range []string{"refs/pr/2", "refs/pr/3"} {
		sameFiles(t, without(w.Files(targetRepo, pr)), want)
	}
	if _, ok := w.Files(targetRepo, "refs/pr/4")["NOTICE"]; !ok {
		t.Error("the new plan has no pull request of its own")
	}
}

// TestPullRequestVisibility: a pull request on a public repo shows a private model to everybody.
func TestPullRequestVisibility(t *testing.T) {
	w := proposal(t, small())
	w.Configure(sourceRepo, hubtest.Private())
	_, err := w.convert(t.Context(), t, t.TempDir())
	if v := (*target.VisibilityError)(nil); !errors.As(err, &v) || len(w.log.take()) > 0 || w.Count("POST", anyCommit) > 0 {
		t.Errorf("a public target: %v", err)
	}
	w.mustConvert(t, func(o *pipeline.Options) { o.Push.Public = true })
}

// TestManyConflicts: commits that lose against others wait by the client's clock and are made again, up to a bound.
func TestManyConflicts(t *testing.T) {
	want := reference(t, small())
	w := newWorld(t, small())
	w.Inject(hubtest.Fault{Name: "commit-race", Times: 6})
	w.mustConvert(t)
	sameTarget(t, w, want)
	if w.FaultsActed("commit-race") != 6 || w.clock.Waited() == 0 {
		t.Errorf("%d conflicts, waited %v", w.FaultsActed("commit-race"), w.clock.Waited())
	}
	w = newWorld(t, small())
	w.Inject(hubtest.Fault{Name: "commit-race", Times: always})
	if _, err := w.convert(t.Context(), t, t.TempDir()); !errors.Is(err, hub.ErrConflict) || !strings.Contains(hub.Hint(err), "same command again") {
		t.Errorf("error %v, hint %q", err, hub.Hint(err))
	}
	w.unfinished(t)
}

// TestUploadWhilePullRequestOpens: an upload that begins while the pull request is being opened goes to main, for a commit
// that opens one, or to the pull request; never to main itself, where somebody who proposes may not write.
func TestUploadWhilePullRequestOpens(t *testing.T) {
	w := proposal(t, deep())
	waits := make(chan struct{}) // the opening commit has 50 outputs; the 51st is with the other uploader once the 52nd is finished
	n := 0
	w.log.hook = func(string) {
		if n++; n == 52 {
			close(waits)
		}
	}
	w.Inject(hubtest.Fault{Method: "POST", Path: anyCommit, Action: func(x *hubtest.Exchange) {
		select {
		case <-waits:
		case <-t.Context().Done():
		}
		x.Next(x.ResponseWriter)
	}})
	w.mustConvert(t)
	asked := map[string]int{}
	for _, r := range w.Requests() {
		if strings.Contains(r.Path, "/preupload/") {
			asked[r.Path[strings.Index(r.Path, "/preupload/"):]+"?"+r.RawQuery]++
		}
	}
	if asked["/preupload/main?create_pr=1"] < 50 || asked["/preupload/refs/pr/1?"] == 0 || len(asked) != 2 {
		t.Errorf("uploads by branch: %v", asked)
	}
}
