package convert_test

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/df11-convert/df11-convert/internal/back"
	"github.com/df11-convert/df11-convert/internal/convert"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/reader"
	shared "github.com/df11-convert/df11-convert/internal/testing/world"
)

// theirNames are where somebody may have something of his own: names of results, of the state of a
// run, and others.
var theirNames = []string{
	"README.md", "config.json", "tokenizer.json", "df11-manifest.json", "df11.png", "chat/template.jinja", "chat", "notes/README.md",
	"remainder.safetensors", "model.safetensors", "lm_head.safetensors", "model_layers_0.safetensors", "other.safetensors", "sub/other.safetensors",
	"remainder-00001-of-00002.safetensors", "model-00001-of-00002.safetensors", "model.safetensors.index.json", ".df11-x.tmp", ".df11-UNFINISHEDUNFINISHEDUNFINI.tmp",
	".df11/part-1-of-1.json", ".df11-convert", ".df11-convert/notes.txt", ".df11-convert/lock", ".df11-convert/files",
	".df11-convert/part-1-of-1.json", ".df11-convert/files/lm_head.safetensors", ".df11-convert/files/tokenizer.json",
	".df11-convert/spool-0123456789abcdef.data", ".df11-convert/sub/part-1-of-1.json",
}

// A neighbor puts things into a folder, and knows what they were.
type neighbor struct {
	*rand.Rand
	t            *testing.T
	out, outside string
	left         map[string]string // by path
}

// has reports whether something of his is at a path, above it, or below.
func (n *neighbor) has(name string) bool {
	for own := range n.left {
		if own == name || strings.HasPrefix(own, name+"/") || strings.HasPrefix(name, own+"/") {
			return true
		}
	}
	return false
}

// leaves puts one thing into the folder, in the place of what is there.
func (n *neighbor) leaves(name string) {
	path := filepath.Join(n.out, name)
	for dir := filepath.Dir(name); dir != "."; dir = filepath.Dir(dir) {
		if n.left[dir] != "" {
			return // he has something else there
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil || os.RemoveAll(path) != nil {
		return
	}
	delete(n.left, name)
	for own := range n.left {
		if strings.HasPrefix(own, name+"/") {
			delete(n.left, own)
		}
	}
	mine := fmt.Appendf(nil, "theirs %d", n.Uint64())
	var err error
	switch n.IntN(8) {
	case 0:
		err = os.Symlink(filepath.Join(n.outside, "precious"), path)
	case 1:
		err = os.Symlink(n.outside, path)
	case 2:
		err = os.Symlink("nowhere", path)
	case 3:
		err = os.Link(filepath.Join(n.outside, "precious"), path)
	case 4:
		if err = os.Mkdir(path, 0o755); err == nil {
			name += "/inside"
			err = os.WriteFile(filepath.Join(path, "inside"), mine, 0o644)
		}
	default:
		err = os.WriteFile(path, mine, 0o644)
	}
	if err != nil {
		n.t.Fatal(err)
	}
	n.left[name] = thing(n.t, filepath.Join(n.out, name))
}

// thing describes a file or a link; "" if nothing is there.
func thing(t *testing.T, path string) string {
	info, err := os.Lstat(path)
	if err != nil {
		return ""
	}
	content := ""
	if info.Mode()&fs.ModeSymlink != 0 {
		content, err = os.Readlink(path)
	} else if info.Mode().IsRegular() {
		content = string(shared.Read(t, path))
	}
	shared.Must(t, err)
	return fmt.Sprint(info.Mode(), " ", content)
}

// TestNobodysFilesAreLost: whatever somebody has in an output folder or a work folder, files,
// folders, links and names of ours, before a run or while it works, is there afterwards, unless
// --force was said, and nothing outside is touched. A run that ends well has made the right files
// nevertheless, and a folder that looks finished is of one model.
func TestNobodysFilesAreLost(t *testing.T) {
	if err := os.Symlink("a", filepath.Join(t.TempDir(), "b")); err != nil {
		t.Skip("NOT TESTED: no symbolic links here: ", err)
	}
	extra := map[string][]byte{names.Chart: hubtest.OwnPicture[names.Chart], "tokenizer.json": []byte("{}"), "chat/template.jinja": []byte("{{ x }}")}
	known := func(seed uint64) *hubtest.Model {
		return hubtest.NewLlama(seed, hubtest.ModelOptions{Hidden: 32, Vocab: 256, Layers: 2, ShardBytes: 30_000, Extra: extra})
	}
	sources, results := [2]string{}, [2]string{}
	for i := range sources {
		sources[i], results[i] = writeModel(t, known(uint64(i))), localResult(t, known(uint64(i)))
	}
	w := newWorld(t, known(0))
	ended := map[bool]int{}
	for _, seed := range shared.Seeds(t, 60, 3000) {
		n := &neighbor{rand.New(rand.NewPCG(seed, 21)), t, filepath.Join(t.TempDir(), "out"), t.TempDir(), map[string]string{}}
		shared.Write(t, filepath.Join(n.outside, "precious"), "precious")
		shared.Write(t, filepath.Join(n.outside, "sub", "config.json"), "precious")
		source := 0
		again := func(change func(*convert.Options)) error {
			_, err := convertLocal(t, sources[source], n.out, plan.Options{Include: []string{"*"}}, func(o *convert.Options) {
				o.Model.Origin = &model.Origin{Repo: "org/model", Equal: 1}
				change(o)
			})
			return err
		}
		switch n.IntN(3) { // what is there
		case 0:
			if err := again(func(*convert.Options) {}); err != nil {
				t.Fatal(seed, err)
			}
		case 1:
			if err := again(func(o *convert.Options) { o.GPU = answers(errStop) }); !errors.Is(err, errStop) {
				t.Fatal(seed, err)
			}
		}
		for range n.IntN(3) {
			n.leaves(theirNames[n.IntN(len(theirNames))])
		}
		for range 2 {
			outside := folder(t, n.outside)
			var mu sync.Mutex
			events, at := 0, n.IntN(40)
			// not in the state: what is there while a run works is the run's
			meanwhile := slog.New(logHook(func(slog.Record) {
				mu.Lock()
				defer mu.Unlock()
				if name := theirNames[n.IntN(len(theirNames))]; events == at && !strings.HasPrefix(name, ".df11-convert") {
					n.leaves(name)
				}
				events++
			}))
			command := n.IntN(5)
			var err error
			switch command {
			case 0, 1:
				source = n.IntN(2)
				err = again(func(o *convert.Options) { o.Log = meanwhile })
			case 2:
				source = n.IntN(2)
				err = again(func(o *convert.Options) { o.GPU, o.Log = answers(errStop), meanwhile })
			case 3:
				_, err = w.convert(t.Context(), t, n.out, func(o *convert.Options) { o.Log = meanwhile })
			default:
				d, opens := model.OpenDF11Local(t.Context(), results[0], 0)
				if opens != nil {
					t.Fatal(opens)
				}
				_, err = convert.Decode(t.Context(), convert.DecodeOptions{Pair: back.Pair{DF11: d}, OutDir: n.out})
				d.Close()
			}
			ended[err == nil]++
			step := fmt.Sprintf("seed %d, command %d (%v)", seed, command, err)
			for name, want := range n.left {
				if got := thing(t, filepath.Join(n.out, name)); got != want {
					t.Errorf("%s: %s was %q and is %q", step, name, want, got)
				}
			}
			if after := folder(t, n.outside); fmt.Sprint(after) != fmt.Sprint(outside) {
				t.Errorf("%s: outside was\n%v\nand is\n%v", step, outside, after)
			}
			if command < 2 && err == nil {
				n.whole(step, results[source])
			}
			n.oneModel(step)
		}
	}
	if ended[true] == 0 || ended[false] == 0 {
		t.Errorf("runs that ended well, and others: %v", ended)
	}
	t.Logf("%d runs ended well, %d did not", ended[true], ended[false])
}

// whole checks that a folder has every file of a result but where something else was left before.
func (n *neighbor) whole(step, want string) {
	for name, content := range folder(n.t, want) {
		if !n.has(name) && name != names.Card && name != names.Manifest && string(shared.Read(n.t, filepath.Join(n.out, name))) != content {
			n.t.Errorf("%s: %s is not the result's", step, name)
		}
	}
}

// oneModel checks that a folder with the config and the manifest of a finished result has its
// weights, but where something was left.
func (n *neighbor) oneModel(step string) {
	b, err := os.ReadFile(filepath.Join(n.out, names.Manifest))
	if err != nil {
		return
	}
	m, err := metadata.ParseManifest(b, 0)
	if err != nil || thing(n.t, filepath.Join(n.out, "config.json")) == "" {
		return
	}
	for _, o := range m.Outputs {
		b, err := os.ReadFile(filepath.Join(n.out, o.Path))
		if reader.IsSafetensors(o.Path) && !n.has(o.Path) && err == nil && shared.Sum(b) != o.SHA256 {
			n.t.Errorf("%s: %s is of another model than config and manifest", step, o.Path)
		}
	}
}
