package publish_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/disk"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/publish"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// TestFolderTakenOver checks that a run that ends well removes only its own files, and none of the
// run that takes the folder next, however soon. Many runs try to get one folder. Only one gets it,
// is alone there, and finds what it has written.
func TestFolderTakenOver(t *testing.T) {
	for name, stays := range map[string]bool{"work folder": false, "output folder": true} {
		root := filepath.Join(t.TempDir(), "folder")
		var wg sync.WaitGroup
		var holders, got atomic.Int32
		for range 4 {
			wg.Go(func() {
				for range 100 {
					useFolder(t, root, stays, &holders, &got)
				}
			})
		}
		wg.Wait()
		if _, err := os.Stat(filepath.Join(root, ".df11-convert")); !errors.Is(err, os.ErrNotExist) || got.Load() == 0 {
			t.Errorf("%s: something is left: %v; taken %d times", name, err, got.Load())
		}
	}
}

// useFolder opens a folder, if no one else has it, writes a journal, finds it, and ends.
func useFolder(t *testing.T, root string, stays bool, holders, got *atomic.Int32) {
	p := &plan.Plan{}
	f, err := publish.OpenFolder(t.Context(), root, stays, publish.NewConversion(p, publish.OriginOf(&model.Model{}), "part", false), 0o666)
	if errors.Is(err, disk.ErrLocked) {
		return
	}
	if err != nil {
		t.Error(err)
		return
	}
	got.Add(1)
	if n := holders.Add(1); n != 1 {
		t.Errorf("%d have the folder", n)
	}
	l := f.Ledger()
	if err := f.Save(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(f.State().Name(), "part.json")); err != nil {
		t.Error(err)
	}
	holders.Add(-1)
	if err := errors.Join(l.Close(), f.Close(true)); err != nil {
		t.Error(err)
	}
}

// A result is what a run makes in a folder: weights, and a file next to them.
var result = map[string]string{"model.safetensors": "rest", "head.safetensors": "head", "config.json": "{}"}

// convert makes the result in a folder, as a run does: it takes over what earlier runs have made, and
// meanwhile is called before the end.
func convert(t *testing.T, root string, force bool, meanwhile func() error) error {
	t.Helper()
	p := &plan.Plan{Config: "config.json"}
	for _, name := range []string{"head.safetensors", "model.safetensors"} {
		p.OutputFiles = append(p.OutputFiles, plan.OutputFile{Path: name})
	}
	p.Layout = catalog.Transformers
	f, err := publish.OpenFolder(t.Context(), root, true, publish.NewConversion(p, publish.OriginOf(&model.Model{Origin: &model.Origin{Repo: "org/a"}}), "part", force), 0o666)
	if err != nil {
		return err
	}
	l := f.Ledger()
	err = errors.Join(f.Save(), f.Begin())
	r := &publish.Result{}
	for _, o := range p.OutputFiles {
		if err == nil && !l.Done(o.Path) {
			err = output(f, l, o.Path)
		}
		r.Outputs = l.Outputs()
	}
	if err == nil {
		err = meanwhile()
	}
	config := publish.NewSideFile("config.json", metadata.KindConfig, []byte("{}"))
	manifest := &metadata.Manifest{Schema: metadata.SchemaVersion, Source: metadata.Source{Repo: "org/a"}, Plan: metadata.PlanInfo{Digest: p.Digest(), Layout: string(p.Layout), Dict: plan.DictDigest(nil)}}
	manifest.Outputs = append(manifest.Outputs, config.OutputFile)
	for _, o := range r.Outputs {
		manifest.Outputs = append(manifest.Outputs, metadata.OutputFile{Path: o.Path, Kind: metadata.KindRemainder, Size: o.Size, SHA256: o.SHA256})
	}
	b, marshals := manifest.Marshal()
	r.Files = []publish.SideFile{publish.NewSideFile("README.md", metadata.KindCard, []byte("card")), publish.NewSideFile(names.Manifest, "", b), config}
	if err = errors.Join(err, marshals); err == nil {
		err = f.Finish(t.Context(), r)
	}
	return errors.Join(err, l.Close(), f.Close(err == nil))
}

// output makes one output: it gets its name once the journal lists it.
func output(f *publish.Folder, l *ledger.Ledger, name string) error {
	content := []byte(result[name])
	if err := l.Add(ledger.Output{Path: name, Size: int64(len(content)), SHA256: fmt.Sprintf("%x", sha256.Sum256(content)),
		Place: ledger.Place{Here: true}}); err != nil {
		return err
	}
	file, err := f.Create(name, int64(len(content)))
	if err == nil {
		err = file.WriteAll(content)
	}
	return err
}

func calm() error { return nil }

// holds checks what files of a folder hold.
func holds(t *testing.T, root string, want map[string]string) {
	t.Helper()
	for name, content := range want {
		if b, err := os.ReadFile(filepath.Join(root, name)); err != nil || string(b) != content {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
}

// TestFolderChangedMeanwhile checks that a folder that someone changes during a run doesn't look
// finished afterwards: the run stops and names the file. Once that is fixed, the same call ends
// well.
func TestFolderChangedMeanwhile(t *testing.T) {
	const theirs = "theirs"
	for what, tt := range map[string]struct {
		name, content string // of the change; "" removes it
		right         bool   // the user takes it back
		force         bool   // or says so
		refused       bool
	}{
		"other weights come":   {"other.safetensors", theirs, true, false, true},
		"an output goes":       {"head.safetensors", "", false, false, true},
		"an output is cut off": {"head.safetensors", theirs, false, true, true},
		"a config comes":       {"config.json", theirs, true, false, true},
		"a card comes":         {"README.md", theirs, false, false, false},
		"the journal goes":     {".df11-convert/part.json", "", false, false, false},
	} {
		out := t.TempDir()
		path := filepath.Join(out, tt.name)
		err := convert(t, out, false, func() error {
			if tt.content == "" {
				return os.Remove(path)
			}
			return os.WriteFile(path, []byte(tt.content), 0o666)
		})
		if tt.refused != (err != nil) || err != nil && !strings.Contains(err.Error(), tt.name) {
			t.Errorf("%s: %v", what, err)
		}
		if lost := (*publish.LostFileError)(nil); what == "an output goes" && !errors.As(err, &lost) {
			t.Errorf("%s: %v has no kind", what, err)
		}
		if _, err := os.Stat(filepath.Join(out, "config.json")); tt.refused && tt.name != "config.json" && err == nil {
			t.Errorf("%s: the folder looks finished", what)
		}
		if tt.refused && tt.content != "" { // the same again: it is still in the way
			conflict := (*publish.ConflictError)(nil)
			if err := convert(t, out, false, calm); !errors.As(err, &conflict) || !slices.Contains(slices.Concat(conflict.Files, conflict.Overwritten), tt.name) {
				t.Errorf("%s, unchanged: %v", what, err)
			}
			holds(t, out, map[string]string{tt.name: theirs})
		}
		if tt.right {
			must(t, os.Remove(path))
		}
		if err := convert(t, out, tt.force, calm); err != nil {
			t.Errorf("%s, again: %v", what, err)
		}
		holds(t, out, result)
		if what == "a card comes" {
			holds(t, out, map[string]string{"README.md": theirs})
		}
	}
}

// TestSourceFolderIsNoTarget checks that a result never replaces its source, whatever the path.
func TestSourceFolderIsNoTarget(t *testing.T) {
	source, link := t.TempDir(), filepath.Join(t.TempDir(), "link")
	must(t, os.Mkdir(filepath.Join(source, "sub"), 0o777))
	if err := os.Symlink(source, link); err != nil {
		t.Skip("no symbolic links here: ", err)
	}
	folder, err := os.Stat(source)
	must(t, err)
	if linked, err := os.Stat(link); err != nil || !os.SameFile(folder, linked) {
		t.Skip("links to folders can't be followed here, as under Wine: ", err)
	}
	sibling := t.TempDir()
	for _, tt := range []struct {
		source, out string
		layout      catalog.Layout
		refused     bool
	}{
		{source, source, catalog.Transformers, true},
		{source, link, catalog.Transformers, true},
		{link, source, catalog.Transformers, true},
		{source, filepath.Join(source, "..", filepath.Base(source)), catalog.Transformers, true},
		{source, filepath.Join(source, "sub"), catalog.Transformers, true},
		{source, filepath.Join(source, "new"), catalog.Transformers, false},
		{source, filepath.Dir(source), catalog.Transformers, false},
		{source, sibling, catalog.Transformers, false},
		{source, source, catalog.ComfyUI, false}, // where it has a name of its own
		{"", source, catalog.Transformers, false},
	} {
		m := &model.Model{Folder: tt.source, Listing: plan.Source{Files: []plan.File{{Path: "sub/model.safetensors"}}}}
		err := publish.RefuseSource(m, &plan.Plan{Layout: tt.layout}, tt.out)
		if same := (*publish.SourceTargetError)(nil); errors.As(err, &same) != tt.refused || !tt.refused && err != nil {
			t.Errorf("%s to %s: %v", tt.source, tt.out, err)
		}
	}
}

// must ends the test at an error.
var must = world.Must

// TestSecondNameOfAFile checks that a run keeps a file of the result that a claim lists by a second
// name. A hard link stands for a file system that ignores case: both names lead to one file.
func TestSecondNameOfAFile(t *testing.T) {
	out := t.TempDir()
	must(t, convert(t, out, false, calm))
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte(result["config.json"])))
	manifest, err := os.ReadFile(filepath.Join(out, names.Manifest))
	must(t, err)
	second := strings.Replace(string(manifest), `"path": "config.json"`, `"path": "CONFIG.json", "kind": "config", "size": 2, "sha256": "`+sum+`"}, {"path": "config.json"`, 1)
	must(t, os.WriteFile(filepath.Join(out, names.Manifest), []byte(second), 0o666))
	if err := os.Link(filepath.Join(out, "config.json"), filepath.Join(out, "CONFIG.json")); err != nil && !errors.Is(err, os.ErrExist) {
		t.Skip("no hard links here: ", err)
	}
	if second == string(manifest) {
		t.Fatal("the manifest lists no second name")
	}
	must(t, convert(t, out, false, calm))
	holds(t, out, result)
	holds(t, out, map[string]string{"CONFIG.json": result["config.json"]})
}
