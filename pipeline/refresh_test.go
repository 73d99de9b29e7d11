package pipeline_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/target"
	"github.com/df11-convert/df11-convert/pipeline"
)

// refreshModel has so many layers, whose units span shards.
func refreshModel(seed uint64, layers int) *hubtest.Model {
	return hubtest.NewLlama(seed, hubtest.ModelOptions{Layers: layers, Hidden: 96, Vocab: 700, ShardBytes: 150_000, Extra: noPicture})
}

func client(t *testing.T, srv *hubtest.Server) *hub.Client {
	t.Helper()
	c, err := hub.New(hub.Options{Endpoint: srv.URL, Token: "hf_test"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// pushFrom converts a model of the hub to a target on the same hub.
func pushFrom(t *testing.T, srv *hubtest.Server, source, repo string, change func(*pipeline.Options)) (*pipeline.Report, error) {
	t.Helper()
	c := client(t, srv)
	src, known, p, err := openModel(t.Context(), c, source, plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o := pipeline.Options{
		Source: src, Model: known, Plan: p, WorkDir: t.TempDir(), Memory: budget.Memory{Workers: 2}, Version: "test",
		Push: &target.Push{Hub: c, Repo: repo},
	}
	if change != nil {
		change(&o)
	}
	return pipeline.Run(t.Context(), o)
}

// contents is what a repo holds, but for the card, which names the repo, and the manifest, which lists the card.
func contents(srv *hubtest.Server, repo string) map[string]string {
	m := map[string]string{}
	for p, f := range srv.Files(repo, "main") {
		if p != "README.md" && p != "df11-manifest.json" {
			m[p] = f.SHA256 + f.BlobID
		}
	}
	return m
}

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
	srv.AddModel("a/llama", refreshModel(7, 5))
	if _, err := pushFrom(t, srv, "a/llama", "a/out", nil); err != nil {
		t.Fatal(err)
	}
	recommit(srv, "a/llama", refreshModel(8, 3))
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
	t.Parallel()
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

// TestRefreshMeetsAnotherCommit: what somebody else commits on main, just before the last commit, stays: weights that were removed
// are put back, files that were removed are not deleted again, and a file of the user's is left alone. Where it is in the way, the
// run ends.
func TestRefreshMeetsAnotherCommit(t *testing.T) {
	srv, want, other := toRefresh(t)
	meanwhile := func(files map[string][]byte) {
		srv.ClearFaults()
		srv.Inject(hubtest.Fault{Method: "POST", Path: "/api/models/*/commit/main", Action: func(x *hubtest.Exchange) {
			other = srv.Push("a/out", "main", files)
			x.Next(x.ResponseWriter)
		}})
	}
	meanwhile(map[string][]byte{"model_layers_0.safetensors": []byte("theirs")})
	_, err := pushFrom(t, srv, "a/llama", "a/out", nil)
	foreign(t, err, "model_layers_0.safetensors")
	if srv.Head("a/out", "main") != other {
		t.Error("main has moved")
	}
	meanwhile(map[string][]byte{"model_layers_0.safetensors": nil, "model_layers_4.safetensors": nil, "notes.txt": []byte("x")})
	if _, err := pushFrom(t, srv, "a/llama", "a/out", func(o *pipeline.Options) { o.Force = true }); err != nil {
		t.Fatal(err)
	}
	want["notes.txt"] = contents(srv, "a/out")["notes.txt"]
	refreshed(t, srv, want, other)
}

// TestRefreshIsOneCommit: when the source has a new commit, main of the finished target changes in one commit to what a conversion of
// that gives, card and manifest included; the branch that held the work is gone.
func TestRefreshIsOneCommit(t *testing.T) {
	t.Parallel()
	w, fresh := newWorld(t, taller()), newWorld(t, taller())
	w.mustConvert(t)
	head := w.Head(targetRepo, "main")
	for _, at := range []*world{w, fresh} {
		recommit(at.Server, sourceRepo, small())
		at.mustConvert(t)
	}
	sameFiles(t, w.target(), fresh.target())
	if w.Commits(targetRepo, "main")[0].Parent != head || len(w.Refs(targetRepo)) != 1 {
		t.Errorf("main did not move by one commit, or refs are left: %v", w.Refs(targetRepo))
	}
}

// TestRefreshLosesItsBranch: when the branch of a refresh is gone, because another machine has finished the same refresh or because a
// person has removed it, the run ends well wherever it was: the target is up to date, or is made so.
func TestRefreshLosesItsBranch(t *testing.T) {
	t.Parallel()
	const creation = "/api/models/*/branch/*" // here another machine's result is found at the end only
	for _, at := range []string{creation, "/api/models/*/preupload/*", anyCommit} {
		for by, remove := range map[string]func(t *testing.T, srv *hubtest.Server){
			"another machine": func(t *testing.T, srv *hubtest.Server) {
				if _, err := pushFrom(t, srv, "a/llama", "a/out", nil); err != nil {
					t.Error(err)
				}
			},
			"a person": func(t *testing.T, srv *hubtest.Server) {
				for _, name := range workBranches(srv) {
					if err := client(t, srv).DeleteBranch(t.Context(), "a/out", name); err != nil {
						t.Error(err)
					}
				}
			},
		} {
			t.Run(at+" by "+by, func(t *testing.T) {
				srv, want, head := toRefresh(t)
				srv.Inject(hubtest.Fault{Method: "POST", Path: at, Action: func(x *hubtest.Exchange) {
					remove(t, srv)
					x.Next(x.ResponseWriter)
				}})
				r, err := pushFrom(t, srv, "a/llama", "a/out", nil)
				if err != nil {
					t.Fatal(err)
				}
				if by == "another machine" && at != creation && !r.UpToDate {
					t.Error("the target is not said to be up to date")
				}
				refreshed(t, srv, want, head)
			})
		}
	}
}

// workBranches lists the branches of a/out other than main.
func workBranches(srv *hubtest.Server) (names []string) {
	for ref := range srv.Refs("a/out") {
		if name := strings.TrimPrefix(ref, "refs/heads/"); name != "main" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// abandon begins a refresh and makes it fail at its last commit; it gives the name of the branch that is left.
func abandon(t *testing.T, srv *hubtest.Server) string {
	t.Helper()
	srv.Inject(hubtest.Fault{Name: "commit-quota", Nth: 2})
	_, err := pushFrom(t, srv, "a/llama", "a/out", nil)
	srv.ClearFaults()
	left := workBranches(srv)
	if err == nil || len(left) != 1 {
		t.Fatalf("branches %v, error %v", left, err)
	}
	return left[0]
}

// TestBranchOfEndedRun: when a run ends after its last commit, before it has removed its branch, the next one removes it.
func TestBranchOfEndedRun(t *testing.T) {
	srv, want, head := toRefresh(t)
	srv.Inject(hubtest.Fault{Method: "DELETE", Path: "*/branch/*", Action: hubtest.Error(403, "", "no")})
	if _, err := pushFrom(t, srv, "a/llama", "a/out", nil); err != nil || len(workBranches(srv)) != 1 {
		t.Fatalf("branches %v, error %v", workBranches(srv), err)
	}
	if _, err := pushFrom(t, srv, "a/llama", "a/out", nil); err != nil {
		t.Fatal(err)
	}
	refreshed(t, srv, want, head)
}

// TestBranchesOfSupersededPlans: a refresh removes the branches of plans that never came to main, and no others. A rerun of
// what main holds already leaves the branch of a plan alone that may be on its way.
func TestBranchesOfSupersededPlans(t *testing.T) {
	srv, _, _ := toRefresh(t)
	digest := strings.TrimPrefix(abandon(t, srv), "df11-convert/")
	others := []string{"df11-convert/" + digest[:63], "df11-convert/mine", "df11-convert/next/" + digest, digest}
	for _, name := range others {
		srv.CreateBranch("a/out", name, "main")
	}
	slices.Sort(others)
	recommit(srv, "a/llama", refreshModel(9, 5))
	if _, err := pushFrom(t, srv, "a/llama", "a/out", nil); err != nil {
		t.Fatal(err)
	}
	if left := workBranches(srv); !slices.Equal(left, others) {
		t.Errorf("left are %v, want %v", left, others)
	}
	srv.CreateBranch("a/out", "df11-convert/"+digest, "main")
	if _, err := pushFrom(t, srv, "a/llama", "a/out", nil); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(workBranches(srv), "df11-convert/"+digest) {
		t.Error("the branch of another plan is gone, although main has not moved")
	}
}

// TestRefreshOfBranch: a target branch is refreshed like main, on a branch of another name, and those of main stay.
func TestRefreshOfBranch(t *testing.T) {
	srv, want, _ := toRefresh(t)
	srv.CreateBranch("a/out", "next", "main")
	ofMain := "df11-convert/" + strings.Repeat("0", 64) // where another plan refreshes main
	srv.CreateBranch("a/out", ofMain, "main")
	head := srv.Head("a/out", "main")
	toNext := func(o *pipeline.Options) { o.Push.Revision = "next" }
	if _, err := pushFrom(t, srv, "a/llama", "a/out", toNext); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for p, f := range srv.Files("a/out", "next") {
		if _, ok := want[p]; ok {
			got[p] = f.SHA256 + f.BlobID
		}
	}
	if left := workBranches(srv); !maps.Equal(got, want) || !slices.Equal(left, []string{ofMain, "next"}) || srv.Head("a/out", "main") != head {
		t.Errorf("branches %v; the branch holds\n%v\nwant\n%v", left, got, want)
	}
}

// TestRefreshWithoutAJournal: what a stopped refresh has committed on its branch, from which the journal was lost, is brought to main
// although nothing of it has to be uploaded again.
func TestRefreshWithoutAJournal(t *testing.T) {
	srv, want, head := toRefresh(t)
	srv.Push("a/out", abandon(t, srv), map[string][]byte{".df11/part-1-of-1.json": nil})
	if _, err := pushFrom(t, srv, "a/llama", "a/out", nil); err != nil {
		t.Fatal(err)
	}
	refreshed(t, srv, want, head)
}

// TestRenamedTarget: a target that was renamed is found under its former name, and is known by the new one in report and card.
func TestRenamedTarget(t *testing.T) {
	srv, want, head := toRefresh(t)
	srv.Rename("a/out", "b/new")
	srv.ResetLog()
	r, err := pushFrom(t, srv, "a/llama", "a/out", nil)
	if err != nil {
		t.Fatal(err)
	}
	card, err := srv.ReadFile("b/new", "main", "README.md")
	if err != nil || !strings.Contains(string(card), "b/new") || strings.Contains(string(card), "a/out") {
		t.Errorf("the card names another repo: %v", err)
	}
	if r.Repo != "b/new" || !strings.HasSuffix(r.URL, "/b/new") || !maps.Equal(contents(srv, "b/new"), want) || srv.Commits("b/new", "main")[0].Parent != head {
		t.Errorf("published to %s, %s", r.Repo, r.URL)
	}
	if n := srv.Count("POST", "*a/out*") + srv.Count("PUT", "*a/out*") + srv.Count("DELETE", "*a/out*"); n > 0 {
		t.Errorf("%d requests change a repo under its former name", n)
	}
}
