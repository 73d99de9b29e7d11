package convert_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/df11-convert/df11-convert/internal/convert"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/publish"
	shared "github.com/df11-convert/df11-convert/internal/testing/world"
)

// rounds are the commits of this program whose manifests and journals are in testdata/rounds
// (README.md there says how they were made). Results of each are out there. Newer programs must
// take them for their own, forever.
var rounds = []string{"8d3335a", "8f9d1bb7", "e7d27bd1", "e7972603"}

// A round has what a program of that round made of small, in a folder or in a repo.
type round struct {
	t       *testing.T
	commit  string
	kind    string            // "folder", "repo", or "local", for a folder as the source
	content map[string][]byte // of the result's files, by SHA-256
}

// newRound finds the content of the files. Weights are byte for byte those of today.
func newRound(t *testing.T, commit, kind string, now *world) round {
	r := round{t, commit, kind, map[string][]byte{}}
	for name := range now.Files(targetRepo, "main") {
		b := []byte(content(t, now.Server, targetRepo, "main", name))
		r.content[shared.Sum(b)] = b
	}
	for _, b := range shared.ReadAll(t, filepath.Join("testdata", "rounds", commit)) {
		r.content[shared.Sum(b)] = b
	}
	return r
}

// read returns a file of the round.
func (r round) read(name string) []byte {
	b, err := os.ReadFile(filepath.Join("testdata", "rounds", r.commit, r.kind+"-"+name))
	shared.Must(r.t, err)
	return b
}

// finished returns the files of the result.
func (r round) finished() map[string][]byte {
	files := map[string][]byte{names.Manifest: r.read(names.Manifest)}
	m, err := metadata.ParseManifest(files[names.Manifest], 0)
	shared.Must(r.t, err)
	for _, f := range m.Outputs {
		if files[f.Path] = r.content[f.SHA256]; files[f.Path] == nil {
			r.t.Fatalf("%s: this program makes other bytes than %s", f.Path, r.commit)
		}
	}
	return files
}

// begun returns the files of a run that ended early, with its journal at a path.
func (r round) begun(journal string) map[string][]byte {
	files := map[string][]byte{journal: r.read("journal.json")}
	for path, o := range ledger.ReadJournal(files[journal]).Outputs {
		files[path] = r.content[o.SHA256]
	}
	if len(files) < 2 {
		r.t.Fatalf("the journal of %s lists nothing", r.commit)
	}
	return files
}

// TestEarlierRounds checks that this program takes over what those of earlier rounds have made, in
// a folder and in a repo, finished and begun, also if the source has another name or another commit
// now. Of what is finished, no weight is read or sent again. Outputs of what is begun aren't made
// again.
func TestEarlierRounds(t *testing.T) {
	t.Parallel()
	now := newWorld(t, small())
	now.mustConvert(t)
	unchanged := func(*convert.Options) {}
	for _, commit := range rounds {
		for name, change := range map[string]func(*world){
			"": func(*world) {}, "-renamed": func(w *world) { w.Rename(sourceRepo, "new/name") },
			"-updated": func(w *world) { w.Push(sourceRepo, "main", text("LICENSE", "mit")) },
		} {
			start := func(t *testing.T) *world {
				w := newWorld(t, small())
				change(w)
				return w
			}
			t.Run("finished-repo-"+commit+name, func(t *testing.T) {
				w := start(t)
				w.AddRepo(targetRepo, newRound(t, commit, "repo", now).finished())
				r, x := w.refresh(t)
				if x.source+x.sent > 0 || r.Made.Now > 0 || !tookAll(r) {
					t.Errorf("%+v, %+v, %+v", x, r.Made, r.Verified)
				}
				for _, name := range weightFiles(now.target()) {
					if w.target()[name] != now.target()[name] {
						t.Errorf("%s differs", name)
					}
				}
				if r, _ := w.refresh(t); !r.Verified.UpToDate {
					t.Errorf("it isn't up to date: %+v", r.Verified)
				}
			})
			t.Run("finished-folder-"+commit+name, func(t *testing.T) {
				w, out := start(t), t.TempDir()
				shared.WriteAll(t, out, newRound(t, commit, "folder", now).finished())
				r := w.mustConvert(t, inFolder(out))
				if r.Made.Now > 0 || !tookAll(r) {
					t.Errorf("%+v, %+v", r.Made, r.Verified)
				}
				if r := w.mustConvert(t, inFolder(out)); !r.Verified.UpToDate {
					t.Errorf("it isn't up to date: %+v", r.Verified)
				}
			})
			for end, last := range map[string]func(*convert.Options){"whole": unchanged, "finish": finishing} {
				t.Run("begun-repo-"+end+"-"+commit+name, func(t *testing.T) {
					w := start(t)
					w.AddRepo(targetRepo, newRound(t, commit, "repo", now).begun(".df11/part-1-of-2.json"))
					if end == "finish" {
						w.mustConvert(t, part(2, 2))
					}
					w.mustConvert(t, last)
					notAgain(t, w.log.take(), "model_layers_0.safetensors", "model_layers_2.safetensors")
					w.namesOnlyOurs(t)
				})
			}
			t.Run("begun-folder-"+commit+name, func(t *testing.T) {
				w, out := start(t), t.TempDir()
				shared.WriteAll(t, out, newRound(t, commit, "folder", now).begun(".df11-convert/part-1-of-1.json"))
				w.mustConvert(t, inFolder(out))
				notAgain(t, w.log.take(), "model_embed_tokens.safetensors")
			})
		}
	}
}

// TestEarlierRoundsOfFolders is TestEarlierRounds for a local source, also if its folder has another
// name now. No commit says which weights the result is of: a manifest lists their SHA-256, and what is
// begun is compared with the source. What other weights have begun stays.
func TestEarlierRoundsOfFolders(t *testing.T) {
	t.Parallel()
	now := newWorld(t, small())
	now.mustConvert(t)
	named := func(name string, m *hubtest.Model) string {
		dir := filepath.Join(t.TempDir(), name)
		shared.Must(t, m.Write(dir))
		return dir
	}
	same, renamed, other := named("model", small()), named("moved", small()), named("model", retrained())
	for _, commit := range rounds {
		r := newRound(t, commit, "local", now)
		for _, dir := range []string{same, renamed} {
			t.Run("finished-"+commit+"-"+filepath.Base(dir), func(t *testing.T) {
				w, out := newWorld(t, nil), t.TempDir()
				shared.WriteAll(t, out, r.finished())
				report, err := convertWith(t.Context(), t, w.client(t), dir, w.plan, inFolder(out))
				shared.Must(t, err)
				if report.Made.Now > 0 || !tookAll(report) {
					t.Errorf("%+v, %+v", report.Made, report.Verified)
				}
			})
			t.Run("begun-"+commit+"-"+filepath.Base(dir), func(t *testing.T) {
				w, out := newWorld(t, nil), t.TempDir()
				shared.WriteAll(t, out, r.begun(".df11-convert/part-1-of-1.json"))
				_, err := convertWith(t.Context(), t, w.client(t), dir, w.plan, inFolder(out), w.logged)
				shared.Must(t, err)
				notAgain(t, w.log.take(), "model_embed_tokens.safetensors")
				if left := shared.ReadAll(t, out)["model.safetensors"]; left != nil {
					t.Error("the remainder of the former name is left")
				}
			})
			t.Run("begun-repo-"+commit+"-"+filepath.Base(dir), func(t *testing.T) {
				w := newWorld(t, nil)
				w.AddRepo(targetRepo, r.begun(".df11/part-1-of-1.json"))
				_, err := convertWith(t.Context(), t, w.client(t), dir, w.plan, w.logged, toTarget)
				shared.Must(t, err)
				notAgain(t, w.log.take(), "model_embed_tokens.safetensors")
				w.namesOnlyOurs(t)
			})
		}
		t.Run("of-others-"+commit, func(t *testing.T) {
			w, out := newWorld(t, nil), t.TempDir()
			shared.WriteAll(t, out, r.begun(".df11-convert/part-1-of-1.json"))
			before := folder(t, out)
			_, err := convertWith(t.Context(), t, w.client(t), other, w.plan, inFolder(out))
			if _, refused := errors.AsType[*publish.ConflictError](err); !refused {
				t.Errorf("the error is %v", err)
			}
			if !maps.Equal(before, folder(t, out)) {
				t.Error("the folder has changed")
			}
		})
	}
}

// TestRules checks what happens to a finished result when the number of the rules rises, by a result
// of the number before: it's outdated, and the next run renews it without reading a weight. A result
// of newer rules is left to the newer version, which would renew what this one changes.
func TestRules(t *testing.T) {
	t.Parallel()
	numbered := func(t *testing.T, by int) *world {
		w := licensed(t)
		m := w.manifest(t)
		m.Plan.Rules += by
		b, err := m.Marshal()
		shared.Must(t, err)
		w.Push(targetRepo, "main", map[string][]byte{names.Manifest: b})
		return w
	}
	check := func(t *testing.T, w *world, current bool, want publish.State) {
		t.Helper()
		c := w.client(t)
		push := publish.Push{Hub: c, Repo: targetRepo}
		from, err := c.Info(t.Context(), sourceRepo, "")
		shared.Must(t, err)
		if s := push.UpToDate(t.Context(), from, c, "", 0); (s != nil) != current {
			t.Errorf("up to date: %v", s)
		}
		_, m, p, err := openModel(t.Context(), c, sourceRepo, w.plan)
		shared.Must(t, err)
		run := publish.NewConversion(p, publish.OriginOf(m), "", false)
		if got, _, err := push.State(t.Context(), run, m); got != want {
			t.Errorf("state %s, %v", got, err)
		}
	}
	t.Run("raised", func(t *testing.T) {
		w := numbered(t, -1)
		check(t, w, false, publish.Outdated)
		if r, x := w.refresh(t); x.source+x.sent > 0 || r.Made.Now > 0 || r.Verified.UpToDate || !tookAll(r) {
			t.Errorf("%+v, %+v, %+v", x, r.Made, r.Verified)
		}
		if got := w.manifest(t).Plan.Rules; got != plan.Rules {
			t.Errorf("the manifest has rules %d", got)
		}
		check(t, w, true, publish.Current)
	})
	t.Run("newer", func(t *testing.T) {
		w := numbered(t, 1)
		check(t, w, true, publish.Current)
		head := w.Head(targetRepo, "main")
		if r, _ := w.refresh(t); !r.Verified.UpToDate {
			t.Errorf("%+v", r.Verified)
		}
		w.Push(sourceRepo, "main", text("LICENSE", "mit"))
		_, err := w.convert(t.Context(), t, t.TempDir())
		if _, newer := errors.AsType[*publish.NewerError](err); !newer {
			t.Errorf("the error is %v", err)
		}
		if w.Head(targetRepo, "main") != head {
			t.Error("the target has changed")
		}
		w.mustConvert(t, forced)
		check(t, w, true, publish.Current)
	})
	t.Run("newer-folder", func(t *testing.T) {
		w, out := newWorld(t, small()), t.TempDir()
		w.mustConvert(t, inFolder(out))
		name := filepath.Join(out, names.Manifest)
		b := bytes.Replace(shared.Read(t, name), fmt.Appendf(nil, `"rules": %d`, plan.Rules), []byte(`"rules": 9`), 1)
		shared.Must(t, os.WriteFile(name, b, 0o600))
		if r := w.mustConvert(t, inFolder(out)); !r.Verified.UpToDate {
			t.Errorf("%+v", r.Verified)
		}
		before := folder(t, out)
		w.Push(sourceRepo, "main", text("LICENSE", "mit"))
		_, err := w.convert(t.Context(), t, t.TempDir(), inFolder(out))
		if _, newer := errors.AsType[*publish.NewerError](err); !newer {
			t.Errorf("the error is %v", err)
		}
		if !maps.Equal(before, folder(t, out)) {
			t.Error("the folder has changed")
		}
	})
}

// TestResultsInANewerForm checks that a manifest or journal in a newer form is neither damaged nor
// someone else's: a run leaves the result alone, unless it has Force.
func TestResultsInANewerForm(t *testing.T) {
	refused := func(t *testing.T, err error) {
		t.Helper()
		if _, newer := errors.AsType[*publish.NewerError](err); !newer {
			t.Errorf("the error is %v", err)
		}
	}
	schema := func(b []byte) []byte {
		return bytes.Replace(b, []byte(`"schema_version": 1`), []byte(`"schema_version": 2`), 1)
	}
	t.Run("manifest", func(t *testing.T) {
		w := newWorld(t, small())
		w.mustConvert(t)
		w.Push(targetRepo, "main", map[string][]byte{
			names.Manifest: schema([]byte(content(t, w.Server, targetRepo, "main", names.Manifest)))})
		head := w.Head(targetRepo, "main")
		_, err := w.convert(t.Context(), t, t.TempDir())
		refused(t, err)
		c := w.client(t)
		_, m, p, err := openModel(t.Context(), c, sourceRepo, w.plan)
		shared.Must(t, err)
		run := publish.NewConversion(p, publish.OriginOf(m), "", false)
		_, _, err = publish.Push{Hub: c, Repo: targetRepo}.State(t.Context(), run, m)
		refused(t, err)
		if w.Head(targetRepo, "main") != head {
			t.Error("the target has changed")
		}
		w.mustConvert(t, forced)
	})
	t.Run("journal", func(t *testing.T) {
		w := newWorld(t, small())
		w.AddRepo(targetRepo, map[string][]byte{names.JournalDir + "/part-1-of-1.json": []byte(`{"version":4}` + "\n")})
		_, err := w.convert(t.Context(), t, t.TempDir())
		refused(t, err)
	})
	for _, file := range []string{names.Manifest, filepath.Join(names.StateDir, "part-1-of-1.json")} {
		t.Run("folder "+filepath.Base(file), func(t *testing.T) {
			w, out := newWorld(t, small()), t.TempDir()
			w.mustConvert(t, inFolder(out))
			name := filepath.Join(out, file)
			if file == names.Manifest {
				shared.Must(t, os.WriteFile(name, schema(shared.Read(t, name)), 0o600))
			} else {
				shared.Must(t, os.MkdirAll(filepath.Dir(name), 0o700))
				shared.Must(t, os.WriteFile(name, []byte(`{"version":4}`), 0o600))
			}
			before := folder(t, out)
			_, err := w.convert(t.Context(), t, t.TempDir(), inFolder(out))
			refused(t, err)
			if !maps.Equal(before, folder(t, out)) {
				t.Error("the folder has changed")
			}
			w.mustConvert(t, inFolder(out), forced)
		})
	}
}

// logged makes a run count its outputs.
func (w *world) logged(o *convert.Options) { o.Log = slog.New(w.log) }

// toTarget publishes to the target's repo.
func toTarget(o *convert.Options) { push(o).Repo = targetRepo }

// tookAll reports whether a run has verified no weight itself.
func tookAll(r *convert.Report) bool {
	return r.Verified.UpToDate || r.Verified.Earlier == r.Sizes.Weights
}

// notAgain fails the test if outputs were made.
func notAgain(t *testing.T, made []string, outputs ...string) {
	t.Helper()
	for _, o := range outputs {
		if slices.Contains(made, o) {
			t.Errorf("%s was made again", o)
		}
	}
}

// namesOnlyOurs fails the test unless the target has exactly the files of its manifest.
func (w *world) namesOnlyOurs(t *testing.T) {
	t.Helper()
	files := w.Files(targetRepo, "main")
	for _, o := range w.manifest(t).Outputs {
		if _, there := files[o.Path]; !there {
			t.Errorf("%s is missing", o.Path)
		}
		delete(files, o.Path)
	}
	delete(files, names.Manifest)
	delete(files, names.Attributes)
	if len(files) > 0 {
		t.Errorf("left: %v", files)
	}
}
