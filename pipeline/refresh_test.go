package pipeline_test

import (
	"maps"
	"testing"

	"github.com/df11-convert/df11-convert/internal/hubtest"
)

// recommit makes the next commit of a repo hold a model and nothing else.
func recommit(srv *hubtest.Server, repo string, m *hubtest.Model) {
	files := m.Files()
	for p := range srv.Files(repo, "main") {
		if _, ok := files[p]; !ok && p != ".gitattributes" {
			files[p] = nil
		}
	}
	srv.Push(repo, "main", files)
}

// toRefresh is a hub with a finished conversion a/out of a/llama, which has a new commit since then, what a conversion of
// that brings, and main's head.
func toRefresh(t *testing.T) (srv *hubtest.Server, want map[string]string, head string) {
	t.Helper()
	srv = hubtest.Start(t)
	model := partsModel
	model.Extra = noPicture
	srv.AddModel("a/llama", hubtest.NewLlama(7, model))
	if _, err := pushFrom(t, srv, "a/llama", "a/out", nil); err != nil {
		t.Fatal(err)
	}
	model.Layers = 3
	recommit(srv, "a/llama", hubtest.NewLlama(8, model))
	if _, err := pushFrom(t, srv, "a/llama", "a/fresh", nil); err != nil {
		t.Fatal(err)
	}
	return srv, contents(srv, "a/fresh"), srv.Head("a/out", "main")
}

// refreshed checks that main moved once and holds all that is new and nothing else, and that the branch is gone.
func refreshed(t *testing.T, srv *hubtest.Server, want map[string]string, before string) {
	t.Helper()
	if got := contents(srv, "a/out"); !maps.Equal(got, want) {
		t.Errorf("the refreshed repo differs from a fresh one:\n%v\n%v", got, want)
	}
	if c := srv.Commits("a/out", "main"); c[0].Parent != before {
		t.Error("main did not move by one commit")
	}
	if refs := srv.Refs("a/out"); len(refs) != 1 {
		t.Errorf("refs: %v", refs)
	}
}

// TestRefreshCommitFaults: whatever happens to the one commit that a refresh makes on main, in the end main holds the new
// weights with the new config, or it has not moved.
func TestRefreshCommitFaults(t *testing.T) {
	for _, fault := range []string{"commit-400-lfs", "commit-412", "commit-500", "commit-504-after", "commit-reset-after", "commit-quota"} {
		t.Run(fault, func(t *testing.T) {
			srv, want, head := toRefresh(t)
			srv.Inject(hubtest.Fault{Name: fault, Nth: 2}) // the first commit is the branch's
			_, err := pushFrom(t, srv, "a/llama", "a/out", nil)
			if srv.FaultsActed(fault) != 1 {
				t.Fatal("the fault did not act")
			}
			if err != nil {
				if srv.Head("a/out", "main") != head {
					t.Error("main has moved")
				}
				if _, err := pushFrom(t, srv, "a/llama", "a/out", nil); err != nil {
					t.Fatal(err)
				}
			}
			refreshed(t, srv, want, head)
		})
	}
}

// TestRefreshMeetsAnotherCommit: somebody else's commit on main, just before the last one, takes nothing away from the
// result: weights that it removed are put back, and files that it removed are not deleted again.
func TestRefreshMeetsAnotherCommit(t *testing.T) {
	srv, want, other := toRefresh(t)
	srv.Inject(hubtest.Fault{Method: "POST", Path: "/api/models/*/commit/main", Action: func(x *hubtest.Exchange) {
		other = srv.Push("a/out", "main", map[string][]byte{
			"model_layers_0.safetensors": []byte("else"), "model_layers_4.safetensors": nil, "notes.txt": []byte("x"),
		})
		x.Next(x.ResponseWriter)
	}})
	if _, err := pushFrom(t, srv, "a/llama", "a/out", nil); err != nil {
		t.Fatal(err)
	}
	refreshed(t, srv, want, other)
}
