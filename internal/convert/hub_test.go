package convert_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/convert"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/publish"
	shared "github.com/df11-convert/df11-convert/internal/testing/world"
)

// layoutModel is one model whose tensors are dealt to files in many ways; its units never change.
func layoutModel(order hubtest.Order, shardBytes int64) *hubtest.Model {
	return hubtest.NewLlama(21, hubtest.ModelOptions{Hidden: 32, Vocab: 128, Layers: 11, Order: order, ShardBytes: shardBytes, Extra: hubtest.OwnPicture})
}

// TestHubEqualsLocal checks that the published files have the bytes of a local conversion: for
// models of several families, however their tensors lie in files, for one worker and for several,
// on every server. Each file is streamed once.
func TestHubEqualsLocal(t *testing.T) {
	t.Parallel()
	tiny := func(change func(*hubtest.ModelOptions)) hubtest.ModelOptions {
		o := hubtest.ModelOptions{Hidden: 32, Vocab: 256, Layers: 3, ShardBytes: 30_000}
		change(&o)
		return o
	}
	oneFile := localResult(t, layoutModel(hubtest.OrderModel, 0))
	for name, tt := range map[string]struct {
		model *hubtest.Model
		like  string // a result of the same weights in another layout
	}{
		"sharded":      {model: hubtest.NewLlama(1, tiny(func(*hubtest.ModelOptions) {}))},
		"one file":     {model: hubtest.NewLlama(2, tiny(func(o *hubtest.ModelOptions) { o.ShardBytes = 0 }))},
		"tied":         {model: hubtest.NewLlama(3, tiny(func(o *hubtest.ModelOptions) { o.Tied = true }))},
		"stored alias": {model: hubtest.NewLlama(4, tiny(func(o *hubtest.ModelOptions) { o.Tied, o.StoreTied = true, true }))},
		"qwen3":        {model: hubtest.NewQwen3(5, tiny(func(*hubtest.ModelOptions) {}))},
		"qwen2":        {model: hubtest.NewQwen2(6, tiny(func(*hubtest.ModelOptions) {}))},
		"extra files":  {model: hubtest.NewLlama(7, tiny(func(o *hubtest.ModelOptions) { o.ExtraFiles = true }))},

		"each tensor in a file of its own": {layoutModel(hubtest.OrderModel, 1), oneFile},
		"sorted by name":                   {layoutModel(hubtest.OrderName, 60_000), oneFile},
		"sorted by name, one file":         {layoutModel(hubtest.OrderName, 0), oneFile},
		"units at both ends":               {layoutModel(hubtest.OrderScattered, 60_000), oneFile},
		"units at both ends, one file":     {layoutModel(hubtest.OrderScattered, 0), oneFile},
		"units in three files":             {layoutModel(hubtest.OrderModel, 12_000), oneFile},
	} {
		t.Run(name, func(t *testing.T) {
			out := localResult(t, tt.model)
			if tt.like != "" {
				sameFolder(t, out, tt.like)
			}
			for i, server := range writable {
				w := newWorld(t, tt.model, hubtest.WithWays(hubtest.Servers[server]))
				w.mustConvert(t, func(o *convert.Options) { o.Workers = 1 + i })
				equalsFolder(t, w, out)
				checkPublished(t, w)
				// once for the headers, which takes small files whole; and an image
				if n := 2*tt.model.Size() + 1000; w.sourceBytes() > n {
					t.Errorf("%d bytes were read, want at most %d", w.sourceBytes(), n)
				}
			}
			noGoroutines(t)
		})
	}
}

// namesSource lists the files that show the source's name or size, so that two sources with the
// same weights differ in them.
func namesSource(file string) bool {
	return file == "README.md" || file == "df11.png" || file == names.Manifest
}

// equalsFolder compares the target with a local result, but for the files that name the source.
func equalsFolder(t *testing.T, w *world, dir string) {
	t.Helper()
	for p := range w.target() {
		if namesSource(p) || p == ".gitattributes" {
			continue
		}
		got, err := w.ReadFile(targetRepo, "main", p)
		shared.Must(t, err)
		if !bytes.Equal(got, shared.Read(t, filepath.Join(dir, filepath.FromSlash(p)))) {
			t.Errorf("%s differs from the local result", p)
		}
	}
}

// checkPublished checks what holds for every finished target: true integrity, config.json in the
// last commit only, every hash in the manifest, no journal.
func checkPublished(t *testing.T, w *world) {
	t.Helper()
	m := w.manifest(t)
	for _, f := range m.Source.Files {
		if f.Integrity != "streamed" && f.Integrity != "proof" || f.SHA256 != w.Files(sourceRepo, "main")[f.Path].SHA256 {
			t.Errorf("%s: integrity %s, sha256 %s", f.Path, f.Integrity, f.SHA256)
		}
	}
	files := w.target()
	for _, o := range m.Outputs {
		if f := files[o.Path]; f.Size != o.Size || f.SHA256 != "" && f.SHA256 != o.SHA256 {
			t.Errorf("%s: the manifest says %d bytes %s, the repo has %+v", o.Path, o.Size, o.SHA256, f)
		}
	}
	for i, c := range w.Commits(targetRepo, "main") {
		if _, ok := c.Files["config.json"]; ok != (i == 0) {
			t.Errorf("commit %d from the end has config.json: %v", i, ok)
		}
	}
	for p := range files {
		if strings.HasPrefix(p, ".df11") {
			t.Errorf("%s is left in the repo", p)
		}
	}
}

// TestPublicMeanwhile checks that a private source refuses a public repo that someone creates
// between the inspection of the target and its creation.
func TestPublicMeanwhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t, small())
	w.Configure(sourceRepo, hubtest.Private())
	w.Inject(hubtest.Fault{Method: "POST", Path: "/api/repos/create", Action: func(x *hubtest.Exchange) {
		w.AddRepo(targetRepo, nil)
		x.Next(x.ResponseWriter)
	}})
	_, err := w.convert(t.Context(), t, t.TempDir())
	if v := (*publish.VisibilityError)(nil); !errors.As(err, &v) {
		t.Errorf("a public target: %v", err)
	}
}

// TestRefusedLeavesNothing checks that a run that is refused before any work leaves no folder, no
// state in an existing folder, and no change on the Hub.
func TestRefusedLeavesNothing(t *testing.T) {
	t.Parallel()
	const theirs = "config.json"
	noDisk := func(o *convert.Options) { o.Disk, o.Memory.Spools = 1000, 0 }
	is := func(o *convert.Options) {}
	for name, tt := range map[string]struct {
		there  map[string][]byte // in the target; nil: there is none
		closed bool              // the source
		token  string
		change func(*convert.Options)
		as     any
	}{
		"conflict":     {map[string][]byte{theirs: []byte("mine")}, false, testToken, is, new(*publish.ConflictError)},
		"read along":   {map[string][]byte{"x.safetensors": []byte("mine")}, false, testToken, is, new(*publish.ConflictError)},
		"journal":      {map[string][]byte{".df11/part-1-of-1.json": []byte(`{"version":2,"plan":"0"}`)}, false, testToken, is, new(*publish.ConflictError)},
		"visibility":   {map[string][]byte{}, true, testToken, is, new(*publish.VisibilityError)},
		"not writable": {map[string][]byte{}, false, "hf_reader", is, new(*hub.Error)},
		"their name":   {nil, false, testToken, func(o *convert.Options) { push(o).Repo = "them/x" }, new(*hub.Error)},
		"the source":   {nil, false, testToken, func(o *convert.Options) { push(o).Repo, o.Force = sourceRepo, true }, new(*publish.SourceTargetError)},
		"disk":         {nil, false, testToken, noDisk, new(*budget.DiskError)},
		"disk, a repo": {map[string][]byte{"notes.md": []byte("mine")}, false, testToken, noDisk, new(*budget.DiskError)},
	} {
		for _, keeps := range []string{"nothing", "a new folder", "a folder"} {
			w := newWorld(t, small(), hubtest.WithUser(testToken, hubtest.User{Name: "me", Agrees: true}), hubtest.WithUser("hf_reader", hubtest.User{Name: "me", ReadOnly: true}))
			w.hub = append(w.hub, func(o *hub.Options) { o.Token = tt.token })
			if tt.there != nil {
				w.AddRepo(targetRepo, tt.there)
			}
			if tt.closed {
				w.Configure(sourceRepo, hubtest.Gated("auto"))
			}
			top := t.TempDir()
			work, out := filepath.Join(top, "work"), filepath.Join(top, "out")
			if keeps == "a folder" {
				shared.Write(t, filepath.Join(out, "notes.md"), "mine")
			}
			before := fmt.Sprint(listing(t, top))
			_, err := w.convert(t.Context(), t, work, tt.change, func(o *convert.Options) {
				if keeps != "nothing" {
					o.OutDir = out
				}
			})
			if !errors.As(err, tt.as) {
				t.Errorf("%s, keeps %s: %v", name, keeps, err)
			}
			entries, _ := filepath.Glob(filepath.Join(top, "*"))
			states, _ := filepath.Glob(filepath.Join(top, "*", names.StateDir))
			if after := fmt.Sprint(listing(t, top)); after != before || len(states) > 0 || len(entries) > 0 && keeps != "a folder" {
				t.Errorf("%s, keeps %s: left are %v %v", name, keeps, entries, states)
			}
			if n := w.Count("POST", anyCommit) + w.Count("PUT", "*"); n > 0 {
				t.Errorf("%s: the Hub was changed %d times", name, n)
			}
		}
	}
	out := filepath.Join(t.TempDir(), "out")
	_, err := newWorld(t, small()).convert(t.Context(), t, "", noDisk, inFolder(out))
	if _, left := os.Stat(out); !errors.As(err, new(*budget.DiskError)) || left == nil {
		t.Errorf("without a repo: %v, and the folder is left: %v", err, left == nil)
	}
}

// localResult converts a model locally.
func localResult(t *testing.T, m *hubtest.Model) string {
	t.Helper()
	out := t.TempDir()
	all := plan.Options{Include: []string{"*"}} // as from a repo
	if _, err := convertLocal(t, writeModel(t, m), out, all, nil); err != nil {
		t.Fatal(err)
	}
	return out
}

// noSecret fails the test if an error shows a token or a signature.
func noSecret(t *testing.T, err error) {
	t.Helper()
	for _, s := range []string{"hf_", "Signature", "X-Amz"} {
		if err != nil && strings.Contains(fmt.Sprint(err, hub.Hint(err)), s) {
			t.Errorf("error shows %q: %v", s, err)
		}
	}
}

// TestFinishedIsNotDoneAgain checks on every server that a run changes and converts nothing if the
// target already holds its conversion.
func TestFinishedIsNotDoneAgain(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, ways hubtest.Option) {
		w := newWorld(t, small(), ways)
		w.mustConvert(t)
		head := w.Head(targetRepo, "main")
		w.log.take()
		w.ResetLog()
		w.mustConvert(t, func(o *convert.Options) { o.Disk = 1000 }) // which is enough
		asked := w.Count("POST", "*/objects/batch") + w.Count("POST", anyCommit)
		if again := w.log.take(); asked > 0 || len(again) > 0 || w.Head(targetRepo, "main") != head || len(w.Refs(targetRepo)) != 1 {
			t.Errorf("%d uploads and commits, made are %v, refs %v", asked, again, w.Refs(targetRepo))
		}
	})
}
