package hub_test

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/hubtest"
)

// propose opens a pull request on the target with one file.
func propose(t *testing.T, c *hub.Client, title, path string) (hub.Commit, error) {
	t.Helper()
	op, err := c.Upload(t.Context(), target, "main", hub.Blob{Path: path, Size: 1, Reader: strings.NewReader("x"), PullRequest: true})
	if err != nil {
		return hub.Commit{}, err
	}
	return c.Commit(t.Context(), target, "main", hub.CommitRequest{Summary: title, Ops: []hub.Op{op}, CreatePR: true})
}

// nPulls counts the pull requests of the target.
func (w *world) nPulls() (n int) {
	for ref := range w.srv.Refs(target) {
		if strings.HasPrefix(ref, "refs/pr/") {
			n++
		}
	}
	return n
}

// TestPullRequestFaults: whatever happens to the answer, one pull request is opened, or none and the error tells.
func TestPullRequestFaults(t *testing.T) {
	for _, tt := range []struct {
		fault string
		times int
		posts int
		want  error // nil is success
		wait  time.Duration
	}{
		{"commit-500-after", 1, 1, nil, 0},
		{"commit-504-after", 1, 1, nil, 0},
		{"commit-reset-after", 1, 1, nil, 0},
		{"commit-500-after", hubtest.Always, 1, nil, 0},
		{"commit-500", 1, 2, nil, 75 * time.Second}, // repeated only after it could have appeared
		{"commit-429", 1, 2, nil, 0},
		{"commit-412", 1, 1, hub.ErrConflict, 0},
		{"commit-quota", 1, 1, hub.ErrQuota, 0},
		{"commit-400-lfs", 1, 1, hub.ErrMissingObject, 0},
		{"commit-500", hubtest.Always, 8, errAnyError, 8 * 75 * time.Second},
	} {
		t.Run(fmt.Sprintf("%s-%d", tt.fault, tt.times), func(t *testing.T) {
			w := published(t)
			head := w.srv.Head(target, "main")
			w.srv.Inject(hubtest.Fault{Name: tt.fault, Times: tt.times})
			done, err := propose(t, w.Client, "a proposal", "a.txt")
			noSecret(t, err)
			if tt.want == nil != (err == nil) || !errors.Is(tt.want, errAnyError) && !errors.Is(err, tt.want) || w.nCommits() != tt.posts {
				t.Fatalf("%d posts, %v", w.nCommits(), err)
			}
			if w.clock.Waited() < tt.wait || w.srv.Head(target, "main") != head {
				t.Errorf("waited %v", w.clock.Waited())
			}
			if err != nil {
				if w.nPulls() != 0 {
					t.Error("a pull request was opened in spite of the error")
				}
				return
			}
			if w.nPulls() != 1 || done.PullRequestRef != "refs/pr/1" || done.PullRequestURL != w.srv.URL+"/"+target+"/discussions/1" ||
				done.OID != w.srv.Head(target, "refs/pr/1") {
				t.Errorf("%d pull requests, %+v", w.nPulls(), done)
			}
		})
	}
}

var errAnyError = errors.New("any error")

// TestAPullRequestIsNeverWithoutItsNumber: later changes would go elsewhere. One that the answer does not name is looked for.
func TestAPullRequestIsNeverWithoutItsNumber(t *testing.T) {
	for opened, want := range map[bool]error{true: nil, false: hub.ErrNotHub} {
		w := published(t)
		w.srv.Inject(hubtest.Fault{Name: "no number", Method: "POST", Path: "/api/models/*/commit/*", Action: func(x *hubtest.Exchange) {
			if opened {
				x.Next(httptest.NewRecorder())
			}
			hubtest.Status(200, nil, `{"success":true,"commitOid":"`+w.srv.Head(target, "main")+`"}`)(x)
		}})
		done, err := propose(t, w.Client, "a proposal", "a.txt")
		if !errors.Is(err, want) || opened != (done.PullRequestRef == "refs/pr/1") || w.nCommits() != 1 || opened != (w.nPulls() == 1) {
			t.Errorf("opened %v: %+v after %d posts, %d pull requests, %v", opened, done, w.nCommits(), w.nPulls(), err)
		}
	}
}

// TestPullRequestUnknown: the answer is lost, and the list cannot be read either.
func TestPullRequestUnknown(t *testing.T) {
	w := published(t)
	w.srv.Inject(hubtest.Fault{Name: "commit-reset-after"},
		hubtest.Fault{Name: "500", Method: "GET", Path: "/api/models/*/discussions", Times: hubtest.Always})
	_, err := propose(t, w.Client, "a proposal", "a.txt")
	if !errors.Is(err, hub.ErrUnknownOutcome) || w.nCommits() != 1 || !strings.Contains(hub.Hint(err), "run the same command again") {
		t.Errorf("%d posts, %v; hint %q", w.nCommits(), err, hub.Hint(err))
	}
}

// TestFindPullRequest: only an open one of our own, with the mark in its title and for the right branch, is found.
func TestFindPullRequest(t *testing.T) {
	srv := hubtest.Start(t, hubtest.WithUser("hf_test", hubtest.User{Name: "me"}), hubtest.WithUser("hf_guest", hubtest.User{Name: "guest"}))
	w := newWorldOn(t, srv, 100)
	if _, err := w.CreateRepo(t.Context(), target, nil); err != nil {
		t.Fatal(err)
	}
	guest, err := hub.New(hub.Options{Endpoint: srv.URL, Token: "hf_guest", Clock: w.clock})
	if err != nil {
		t.Fatal(err)
	}
	find := func(c *hub.Client, branch, mark, want string) {
		t.Helper()
		pr, err := c.FindPullRequest(t.Context(), target, branch, mark)
		if err != nil || (pr == nil) != (want == "") || pr != nil && pr.Ref != want {
			t.Errorf("found %+v, %v, want %q", pr, err, want)
		}
	}
	find(w.Client, "main", "mark-1", "")
	for i := range 3 {
		if _, err := propose(t, w.Client, fmt.Sprintf("Add it (mark-%d)", i%2), fmt.Sprintf("%d.txt", i)); err != nil {
			t.Fatal(err)
		}
	}
	find(w.Client, "main", "mark-0", "refs/pr/3") // the newest
	find(w.Client, "", "mark-1", "refs/pr/2")
	find(w.Client, "other", "mark-1", "")
	find(guest, "main", "mark-1", "")
	srv.Inject(hubtest.Fault{Name: "blind", Method: "GET", Path: "/api/models/*/discussions", Times: hubtest.Always, Action: func(x *hubtest.Exchange) {
		x.Request.URL.RawQuery = "" // a hub that does not know the filters
		x.Next(x.ResponseWriter)
	}})
	find(w.Client, "main", "mark-1", "refs/pr/2")
	find(guest, "main", "mark-1", "")
	srv.ClearFaults()
	w.srv.ClosePullRequest(target, 2)
	find(w.Client, "main", "mark-1", "")
}

// TestPullRequestPages: all pages of the list are read, but none behind the one that is wanted.
func TestPullRequestPages(t *testing.T) {
	w := published(t)
	for i := range 52 {
		if _, err := propose(t, w.Client, fmt.Sprintf("number %d", i), fmt.Sprintf("%d.txt", i)); err != nil {
			t.Fatal(err)
		}
	}
	for mark, want := range map[string]string{"number": "refs/pr/52", "number 0": "refs/pr/1"} {
		w.srv.ResetLog()
		pr, err := w.FindPullRequest(t.Context(), target, "main", mark)
		pages := map[string]int{"refs/pr/52": 1, "refs/pr/1": 2}[want]
		if err != nil || pr == nil || pr.Ref != want || w.srv.Count("GET", "/api/models/*/discussions") != pages {
			t.Errorf("%s: %+v, %d pages, %v", mark, pr, w.srv.Count("GET", "/api/models/*/discussions"), err)
		}
	}
}
