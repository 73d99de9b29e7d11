package convert_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/convert"
	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/publish"
	shared "github.com/df11-convert/df11-convert/internal/testing/world"
	"github.com/df11-convert/df11-convert/pipeline"
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

// toRefresh is a hub with a finished conversion of a model that has a new commit since then, what a
// conversion of that brings, and main's head.
func toRefresh(t *testing.T, opts ...hubtest.Option) (w *world, want map[string]hubtest.File, head string) {
	t.Helper()
	w, fresh := newWorld(t, taller(), opts...), newWorld(t, taller(), opts...)
	w.mustConvert(t)
	recommit(w.Server, sourceRepo, small())
	recommit(fresh.Server, sourceRepo, small())
	fresh.mustConvert(t)
	return w, fresh.target(), w.Head(targetRepo, "main")
}

// refreshed checks that main moved once and holds all that is new and nothing else, card and
// manifest included, and that the branch is gone.
func refreshed(t *testing.T, w *world, want map[string]hubtest.File, before string) {
	t.Helper()
	sameFiles(t, w.target(), want)
	if c := w.Commits(targetRepo, "main"); c[0].Parent != before {
		t.Error("main did not move by one commit")
	}
	if left := w.branches(); len(left) > 0 {
		t.Errorf("branches: %v", left)
	}
}

// TestRefreshCommitFaults checks that whatever happens to a refresh's one commit on main, main ends
// with the new weights and the new config, or hasn't moved.
func TestRefreshCommitFaults(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, ways hubtest.Option) {
		for _, fault := range []string{"commit-400-lfs", "commit-412", "commit-500", "commit-504-after", "commit-reset-after", "commit-quota"} {
			t.Run(fault, func(t *testing.T) {
				w, want, head := toRefresh(t, ways)
				w.Inject(hubtest.Fault{Name: fault, Nth: 2}) // the first commit is the branch's
				_, err := w.convert(t.Context(), t, t.TempDir())
				if w.FaultsActed(fault) != 1 {
					t.Fatal("the fault did not act")
				}
				if err != nil {
					if w.Head(targetRepo, "main") != head {
						t.Error("main has moved")
					}
					w.mustConvert(t)
				}
				refreshed(t, w, want, head)
			})
		}
	})
}

// TestRefreshMeetsAnotherCommit checks that a commit by someone else on main, just before the last
// one, stays: removed weights are put back, removed files aren't deleted again, and the user's
// files are left alone. If it's in the way, the run ends.
func TestRefreshMeetsAnotherCommit(t *testing.T) {
	t.Parallel()
	w, want, other := toRefresh(t)
	meanwhile := func(files map[string][]byte) {
		w.ClearFaults()
		w.Inject(hubtest.Fault{Method: "POST", Path: "/api/models/*/commit/main", Action: func(x *hubtest.Exchange) {
			other = w.Push(targetRepo, "main", files)
			x.Next(x.ResponseWriter)
		}})
	}
	meanwhile(map[string][]byte{"model_layers_0.safetensors": []byte("theirs")})
	_, err := w.convert(t.Context(), t, t.TempDir())
	foreign(t, err, "model_layers_0.safetensors")
	if w.Head(targetRepo, "main") != other {
		t.Error("main has moved")
	}
	meanwhile(map[string][]byte{"model_layers_0.safetensors": nil, "model_layers_3.safetensors": nil, "notes.txt": []byte("x")})
	w.mustConvert(t, forced)
	want["notes.txt"] = w.target()["notes.txt"]
	refreshed(t, w, want, other)
}

// sameWeights compares the weight files and config.json of two revisions.
func sameWeights(t *testing.T, got, want map[string]hubtest.File) {
	t.Helper()
	for p, f := range want {
		if (strings.HasSuffix(p, ".safetensors") || p == "config.json") && got[p] != f {
			t.Errorf("%s differs: %+v, want %+v", p, got[p], f)
		}
	}
}

// TestLastCommitIsLookedAt checks that the run fails if the Hub lets someone write over the last
// commit or next to it. The error names the files, and whose conversion it was. A person's card
// doesn't matter. The next run fixes it.
func TestLastCommitIsLookedAt(t *testing.T) {
	t.Parallel()
	other := newWorld(t, nil)
	other.AddModel("org/other", seeded(1))
	shared.Must(t, (entrant{source: "org/other"}).convert(t.Context(), t, other.Server, testToken, targetRepo))
	manifest := []byte(content(t, other.Server, targetRepo, "main", names.Manifest))
	for name, tt := range map[string]struct {
		files map[string][]byte
		want  []string // in the error; none if the run ends well
	}{
		"an output":          {map[string][]byte{"model_layers_0.safetensors": []byte("theirs")}, []string{": model_layers_0.safetensors ("}},
		"other weights":      {map[string][]byte{"other.safetensors": []byte("theirs")}, []string{": other.safetensors ("}},
		"a file that went":   {map[string][]byte{"config.json": nil}, []string{": config.json"}},
		"another conversion": {map[string][]byte{names.Manifest: manifest, "config.json": []byte("{}")}, []string{"config.json, " + names.Manifest, "org/other has written"}},
		"an edited card":     {map[string][]byte{names.Card: []byte("# mine")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w, want, _ := toRefresh(t)
			w.Inject(hubtest.Fault{Method: "POST", Path: "/api/models/*/commit/main", Action: func(x *hubtest.Exchange) {
				x.Next(x.ResponseWriter)
				w.Push(targetRepo, "main", tt.files)
			}})
			_, err := w.convert(t.Context(), t, t.TempDir())
			if lost := (*publish.LostError)(nil); errors.As(err, &lost) != (tt.want != nil) || err != nil && lost == nil {
				t.Fatalf("got %v", err)
			}
			for _, s := range tt.want {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("the error lacks %q: %v", s, err)
				}
			}
			if tt.want != nil {
				// a loader would read other weights along, so not even --force ends next to them
				if w.target()["other.safetensors"] != (hubtest.File{}) {
					w.Push(targetRepo, "main", map[string][]byte{"other.safetensors": nil})
				}
				w.mustConvert(t, forced)
				sameWeights(t, w.target(), want)
			}
		})
	}
}

// TestRefreshLosesItsBranch removes the branch of a refresh, as another machine that finished it
// does, or a person. The run still ends well at any point: the target is up to date, or becomes so.
func TestRefreshLosesItsBranch(t *testing.T) {
	t.Parallel()
	// here another machine's result is found at the end only
	const creation = "/api/models/*/branch/*"
	for _, at := range []string{creation, "/api/models/*/preupload/*", anyCommit} {
		for by, remove := range map[string]func(t *testing.T, w *world){
			"another machine": func(t *testing.T, w *world) { w.mustConvert(t) },
			"a person": func(t *testing.T, w *world) {
				for _, name := range w.branches() {
					if err := w.client(t).DeleteBranch(t.Context(), targetRepo, name); err != nil {
						t.Error(err)
					}
				}
			},
		} {
			t.Run(at+" by "+by, func(t *testing.T) {
				w, want, head := toRefresh(t)
				w.Inject(hubtest.Fault{Method: "POST", Path: at, Action: func(x *hubtest.Exchange) {
					remove(t, w)
					x.Next(x.ResponseWriter)
				}})
				r, err := w.convert(t.Context(), t, t.TempDir())
				shared.Must(t, err)
				if by == "another machine" && at != creation && !r.Verified.UpToDate {
					t.Error("the target is not said to be up to date")
				}
				refreshed(t, w, want, head)
			})
		}
	}
}

// TestRefreshLosesEveryBranch removes the branch of a refresh each time. The run gives up, and says
// that others write to the target, not that there's no such repo.
func TestRefreshLosesEveryBranch(t *testing.T) {
	t.Parallel()
	w, _, _ := toRefresh(t)
	w.Inject(hubtest.Fault{Method: "POST", Path: "/api/models/*/preupload/*", Times: hubtest.Always,
		Action: func(x *hubtest.Exchange) {
			for _, name := range w.branches() {
				_ = w.client(t).DeleteBranch(t.Context(), targetRepo, name) // or another upload's was faster
			}
			x.Next(x.ResponseWriter)
		}})
	_, err := w.convert(t.Context(), t, t.TempDir())
	if !errors.Is(err, publish.ErrBranchGone) {
		t.Fatalf("got %v", err)
	}
	if e := pipeline.ErrorOf(err); e.Kind != pipeline.ErrTargetTaken || !hint.Taken.Is(e.Hint) {
		t.Errorf("kind %s, hint %s", e.Kind, e.Hint)
	}
}

// branches lists the branches of the target other than main.
func (w *world) branches() (names []string) {
	for ref := range w.Refs(targetRepo) {
		if name := strings.TrimPrefix(ref, "refs/heads/"); name != "main" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// TestBranchOfEndedRun checks that the next run removes the branch if a run ends between its last
// commit and that.
func TestBranchOfEndedRun(t *testing.T) {
	t.Parallel()
	w, want, head := toRefresh(t)
	w.Inject(hubtest.Fault{Method: "DELETE", Path: "*/branch/*", Action: hubtest.Error(403, "", "no")})
	if w.mustConvert(t); len(w.branches()) != 1 {
		t.Fatalf("branches %v", w.branches())
	}
	w.mustConvert(t)
	refreshed(t, w, want, head)
}

// TestRefreshOfBranch checks that a target branch is refreshed like main, on a branch of another
// name, and that main's branches stay.
func TestRefreshOfBranch(t *testing.T) {
	t.Parallel()
	w, want, head := toRefresh(t)
	w.CreateBranch(targetRepo, "next", "main")
	ofMain := "df11-convert-" + strings.Repeat("0", 64) // where another plan refreshes main
	w.CreateBranch(targetRepo, ofMain, "main")
	if _, err := w.convert(t.Context(), t, t.TempDir(), func(o *convert.Options) { push(o).Revision = "next" }); err != nil {
		t.Fatal(err)
	}
	sameWeights(t, w.Files(targetRepo, "next"), want)
	if left := w.branches(); !slices.Equal(left, []string{ofMain, "next"}) || w.Head(targetRepo, "main") != head {
		t.Errorf("branches %v, main at %s", left, w.Head(targetRepo, "main"))
	}
}

// TestRefreshWithoutAJournal checks that the commits of a stopped refresh get to main without its
// journal, although nothing needs another upload.
func TestRefreshWithoutAJournal(t *testing.T) {
	t.Parallel()
	w, want, head := toRefresh(t)
	w.Inject(hubtest.Fault{Name: "commit-quota", Nth: 2})
	_, err := w.convert(t.Context(), t, t.TempDir())
	w.ClearFaults()
	left := w.branches()
	if err == nil || len(left) != 1 {
		t.Fatalf("branches %v, error %v", left, err)
	}
	w.Push(targetRepo, left[0], map[string][]byte{".df11/part-1-of-1.json": nil})
	w.mustConvert(t)
	refreshed(t, w, want, head)
}

// TestRenamedTarget checks that a renamed target is found under its former name, and that report
// and card have the new one.
func TestRenamedTarget(t *testing.T) {
	t.Parallel()
	const now = "you/other"
	w, want, head := toRefresh(t)
	w.Rename(targetRepo, now)
	w.ResetLog()
	r := w.mustConvert(t)
	if card := content(t, w.Server, now, "main", names.Card); !strings.Contains(card, now) || strings.Contains(card, targetRepo) {
		t.Error("the card names another repo")
	}
	sameWeights(t, w.Files(now, "main"), want)
	changed := w.Count("POST", "*"+targetRepo+"*") + w.Count("PUT", "*"+targetRepo+"*") + w.Count("DELETE", "*"+targetRepo+"*")
	if r.Target.Repo != now || !strings.HasSuffix(r.Target.URL, now) || w.Commits(now, "main")[0].Parent != head || changed > 0 {
		t.Errorf("published to %s, %s; %d requests change a repo under its former name", r.Target.Repo, r.Target.URL, changed)
	}
}

// TestBranchOfRenamedTarget checks that a branch is up to date after the target was renamed,
// although its card has the new name and the run is given the former one.
func TestBranchOfRenamedTarget(t *testing.T) {
	t.Parallel()
	w, _, _ := toRefresh(t)
	w.Rename(targetRepo, "you/other")
	toBranch := func(o *convert.Options) { push(o).Revision = "next" }
	for _, upToDate := range []bool{false, true} {
		r, err := w.convert(t.Context(), t, t.TempDir(), toBranch)
		if err != nil || r.Verified.UpToDate != upToDate {
			t.Fatalf("up to date is %v, want %v; %v", r != nil && r.Verified.UpToDate, upToDate, err)
		}
	}
}

// TestListingWithOldSizes checks that if a list has a weight file's new SHA-256 with its old size,
// a refresh says what is lost, the target isn't current, and the next run fails too.
func TestListingWithOldSizes(t *testing.T) {
	t.Parallel()
	w, _, _ := toRefresh(t, hubtest.WithWays(hubtest.Ways{OldSizes: true}))
	report, err := w.convert(t.Context(), t, t.TempDir())
	if lost := (*publish.LostError)(nil); !errors.As(err, &lost) ||
		!slices.Contains(lost.Files, "lm_head.safetensors") {
		t.Fatalf("got %v, %v, want what is lost", report, err)
	}
	if state := w.state(t); state != publish.Unfinished {
		t.Errorf("the target is %s", state)
	}
	if report, err = w.convert(t.Context(), t, t.TempDir()); err == nil {
		t.Errorf("the next run finds nothing wrong: %+v", report)
	}
}

// state is that of the target, as status reports it.
func (w *world) state(t *testing.T) publish.State {
	t.Helper()
	state, err := w.stateOrError(t)
	shared.Must(t, err)
	return state
}

func (w *world) stateOrError(t *testing.T) (publish.State, error) {
	t.Helper()
	_, known, p, err := openModel(t.Context(), w.client(t), sourceRepo, w.plan)
	shared.Must(t, err)
	push := publish.Push{Hub: w.client(t), Repo: targetRepo}
	state, _, err := push.State(t.Context(), publish.NewConversion(p, publish.OriginOf(known), "", false), known)
	return state, err
}

// isCurrent reports whether status calls the target current. It may also refuse the target.
func (w *world) isCurrent(t *testing.T) bool {
	t.Helper()
	state, err := w.stateOrError(t)
	if _, refused := errors.AsType[*publish.ConflictError](err); !refused {
		shared.Must(t, err)
	}
	return state == publish.Current
}

// TestOneRowForAllBranches checks a server that has one row per path for all branches, so main
// doesn't get the weights from a refresh's branch. The run repairs that, or ends with what is lost.
// Main never counts as current, or as a model, without its config's weights. The command in the
// hint makes it complete.
func TestOneRowForAllBranches(t *testing.T) {
	t.Parallel()
	ways := hubtest.WithWays(hubtest.Ways{OneRow: true})
	for _, fault := range []string{"", "commit-400-lfs", "commit-412", "commit-500", "commit-504-after", "commit-reset-after", "commit-quota", "killed"} {
		t.Run(fault, func(t *testing.T) {
			w, want, _ := toRefresh(t, ways)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			switch fault {
			case "":
			case "killed": // between the commit of main and the look at it
				w.Inject(hubtest.Fault{Method: "POST", Path: "/api/models/*/commit/main", Action: func(x *hubtest.Exchange) { x.Next(x.ResponseWriter); stop() }})
			default:
				w.Inject(hubtest.Fault{Name: fault, Nth: 2})
			}
			for try, change := range []func(*convert.Options){func(*convert.Options) {}, forced} {
				_, err := w.convert(ctx, t, t.TempDir(), change)
				ctx = t.Context()
				isWhole := true
				for name, f := range w.target() {
					is := want[name]
					isWhole = isWhole && (!strings.HasSuffix(name, ".safetensors") || f.SHA256 == is.SHA256 && f.Size == is.Size)
				}
				if (err == nil || w.isCurrent(t)) && !isWhole {
					t.Fatalf("try %d ends with %v, and main lacks weights", try, err)
				}
				if try == 1 && err != nil {
					t.Errorf("by force: %v", err)
				}
				w.ClearFaults()
			}
		})
	}
}
