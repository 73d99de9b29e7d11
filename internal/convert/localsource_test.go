package convert_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/df11-convert/df11-convert/internal/convert"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/publish"
	shared "github.com/df11-convert/df11-convert/internal/testing/world"
	"github.com/df11-convert/df11-convert/verify"
)

// writer changes one bit of every weight file of a folder, once.
type writer struct {
	t    *testing.T
	dir  string
	once sync.Once
}

func (w *writer) write() {
	w.once.Do(func() {
		names, err := filepath.Glob(filepath.Join(w.dir, "model-*.safetensors"))
		if err != nil || len(names) < 2 {
			w.t.Errorf("%q, %v", names, err)
		}
		for _, name := range names {
			b := shared.Read(w.t, name)
			f, err := os.OpenFile(name, os.O_WRONLY, 0)
			if err != nil {
				w.t.Error(err)
				continue
			}
			_, err = f.WriteAt([]byte{b[len(b)-1] ^ 1}, int64(len(b)-1))
			later := time.Now().Add(time.Hour) // however coarse the clock of the disk is
			if err := errors.Join(err, f.Close(), os.Chtimes(name, later, later)); err != nil {
				w.t.Error(err)
			}
		}
	})
}

// answering is a second decoder that has the source written to when it is asked first, and then
// gives an answer.
func (w *writer) answering(err error) gpu {
	return func(context.Context, *verify.Unit) error { w.write(); return err }
}

// writtenLate is a source that is written to when it is asked first whether it is unchanged, which
// is when an output is checked and hashed, and about to get its name.
type writtenLate struct {
	model.Source
	*writer
}

func (s writtenLate) Unchanged(file int) error {
	s.write()
	return s.Source.Unchanged(file)
}

// TestLocalSourceNeverChangesUnseen checks that a source that is written to during the conversion,
// for example by an unfinished copy, never becomes a finished model. Its bytes are read more than
// once, so the hash could be that of other bytes. Afterwards the source is another model: the next
// run refuses what the journal lists of the first one, and with force converts that. If no output
// had its name yet, there's nothing to refuse.
func TestLocalSourceNeverChangesUnseen(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*convert.Options, *writer){
		"while an output is checked":     func(o *convert.Options, w *writer) { o.GPU = w.answering(nil) },
		"so that an output is wrong":     func(o *convert.Options, w *writer) { o.GPU = w.answering(new(verify.MismatchError)) },
		"before an output gets its name": func(o *convert.Options, w *writer) { o.Source = writtenLate{o.Source, w} },
	} {
		t.Run(name, func(t *testing.T) {
			dir, out := writeModel(t, small()), filepath.Join(t.TempDir(), "out")
			_, err := convertLocal(t, dir, out, plan.Options{}, func(o *convert.Options) {
				change(o, &writer{t: t, dir: dir})
			})
			if _, ok := errors.AsType[*model.ChangedError](err); !ok {
				t.Fatalf("got %v", err)
			}
			if _, err := os.Stat(filepath.Join(out, "config.json")); err == nil {
				t.Error("the model looks finished")
			}
			units, err := filepath.Glob(filepath.Join(out, "*.safetensors"))
			shared.Must(t, err)
			_, err = convertLocal(t, dir, out, plan.Options{}, nil)
			if len(units) > 0 {
				foreign(t, err, journalFile)
				_, err = convertLocal(t, dir, out, plan.Options{}, forced)
			}
			shared.Must(t, err)
			for _, level := range []convert.Level{convert.LevelFull, convert.LevelProof} {
				if _, err := verifyLocal(t, out, dir, level); err != nil {
					t.Errorf("level %s: %v", level, err)
				}
			}
		})
	}
}

// readTwice is a source whose weights have another bit wherever they are read again, while unequal
// returns true: as a program leaves them that has mapped the file, which changes no time.
type readTwice struct {
	model.Source
	unequal func() bool
}

func (s readTwice) Local(file int) io.ReaderAt {
	return otherBit{s.Source.Local(file), s.unequal}
}

type otherBit struct {
	io.ReaderAt
	unequal func() bool
}

func (r otherBit) ReadAt(p []byte, off int64) (int, error) {
	n, err := r.ReaderAt.ReadAt(p, off)
	const at = 4000 // in the weights
	if i := at - off; i >= 0 && i < int64(n) && r.unequal() {
		p[i] ^= 1
	}
	return n, err
}

// TestTwoReadingsAgree checks that the bytes that were converted and compared are those that were
// hashed: if they aren't, what was made goes, and the file is converted again.
func TestTwoReadingsAgree(t *testing.T) {
	t.Parallel()
	for name, always := range map[string]bool{"for a while": false, "always": true} {
		dir, out := writeModel(t, small()), filepath.Join(t.TempDir(), "out")
		var mended atomic.Bool
		_, err := convertLocal(t, dir, out, plan.Options{}, func(o *convert.Options) {
			o.Source = readTwice{o.Source, func() bool { return always || !mended.Load() }}
			o.Log = slog.New(logHook(func(r slog.Record) {
				if strings.HasPrefix(r.Message, "source file was written to") {
					mended.Store(true)
				}
			}))
		})
		if !always {
			shared.Must(t, err)
			if _, err := verifyLocal(t, out, dir, convert.LevelProof); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if changed, ok := errors.AsType[*model.ChangedError](err); !ok || !changed.Read {
			t.Fatalf("%s: %v", name, err)
		}
		_, err = convertLocal(t, dir, out, plan.Options{}, nil)
		shared.Must(t, err)
		if _, err := verifyLocal(t, out, dir, convert.LevelProof); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestWhatFailsAtTheEndFailsAtTheBeginning checks that a source is refused before any output is
// made if its card or config.json can't be.
func TestWhatFailsAtTheEndFailsAtTheBeginning(t *testing.T) {
	t.Parallel()
	config := string(small().Files()["config.json"])
	for name, tt := range map[string]struct{ file, content string }{
		"front matter without an end": {"README.md", "---\nlicense: [\n---\n"},
		"a config twice":              {"config.json", config + config},
		"a quantized config":          {"config.json", strings.Replace(config, "{", `{"quantization_config": {"bits": 4},`, 1)},
		"a config of DF11":            {"config.json", strings.Replace(config, "{", `{"dfloat11_config": null,`, 1)},
	} {
		dir, log := writeModel(t, small()), newOutputLog()
		shared.Write(t, filepath.Join(dir, tt.file), tt.content)
		src, known, err := model.OpenLocal(t.Context(), dir, plan.Options{}, 0)
		if err == nil {
			var p *plan.Plan
			if p, err = plan.New(t.Context(), known.Listing, plan.Options{}); err == nil {
				_, err = converted(t.Context(), convert.Options{Source: src, Model: known, Plan: p, OutDir: t.TempDir(), Log: slog.New(log)})
			}
		}
		if made := log.take(); err != nil && len(made) > 0 {
			t.Errorf("%s: %v only after %d outputs were made", name, err, len(made))
		}
	}
}

// TestSideFileChanges checks that a result gets a file without weights only as it was when the
// source's copy of a public repo was proven, which makes the target public, or when it was compared
// with the same file of the output folder, which stays then.
func TestSideFileChanges(t *testing.T) {
	t.Parallel()
	const config, other = "config.json", "generation_config.json"
	for name, c := range map[string]struct {
		file string
		run  func(t *testing.T, dir string, change, restore func()) error
	}{
		"opened before it was compared": {config, func(t *testing.T, dir string, change, restore func()) error {
			change()
			return convertProven(t, dir, restore, func() {})
		}},
		"read after it was compared": {other, func(t *testing.T, dir string, change, _ func()) error {
			return convertProven(t, dir, func() {}, change)
		}},
		"is in the folder": {other, func(t *testing.T, dir string, change, _ func()) error {
			out := t.TempDir()
			shared.Write(t, filepath.Join(out, other), shared.Read(t, filepath.Join(dir, other)))
			_, err := convertLocal(t, dir, out, plan.Options{}, func(o *convert.Options) {
				o.GPU = gpu(func(context.Context, *verify.Unit) error { change(); return nil })
			})
			return err
		}},
		"is a link since it was checked": {other, func(t *testing.T, dir string, _, _ func()) error {
			src, m, p := openLocal(t, dir, plan.Options{})
			shared.Must(t, m.CheckCopies(p))
			file, secret := filepath.Join(dir, other), filepath.Join(t.TempDir(), "secret")
			shared.Write(t, secret, bytes.Repeat([]byte("s"), len(shared.Read(t, file))))
			shared.Must(t, os.Remove(file))
			if err := os.Symlink(secret, file); err != nil {
				t.Skip("no links here:", err)
			}
			_, err := converted(t.Context(), convert.Options{Source: src, Model: m, Plan: p, OutDir: t.TempDir()})
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := writeModel(t, small())
			file := filepath.Join(dir, c.file)
			was := shared.Read(t, file)
			now := bytes.Replace(was, []byte(": "), []byte(":\t"), 1) // as long as before
			write := func(content []byte) func() { return func() { shared.Write(t, file, content) } }
			err := c.run(t, dir, write(now), write(was))
			if changed, ok := errors.AsType[*model.ChangedError](err); !ok || changed.File != c.file {
				t.Errorf("got %v", err)
			}
		})
	}
}

// convertProven publishes a copy of a public repo, and calls before and after while the source is
// opened but not yet proven, and once it is. It fails the test if that publishes the change.
func convertProven(t *testing.T, dir string, before, after func()) error {
	t.Helper()
	w := newWorld(t, small())
	src, m, p := openLocal(t, dir, plan.Options{})
	before()
	shared.Must(t, m.Prove(t.Context(), src, p, w.client(t), sourceRepo, "", plan.Options{}, 2))
	if why := m.Closed(); why != "" {
		t.Fatal(why)
	}
	after()
	_, err := converted(t.Context(), convert.Options{Source: src, Model: m, Plan: p, WorkDir: t.TempDir(),
		Push: &publish.Push{Hub: w.client(t), Repo: targetRepo}})
	for name := range w.target() {
		if b, _ := w.ReadFile(targetRepo, "main", name); filepath.Ext(name) == ".json" && bytes.Contains(b, []byte(":\t")) {
			t.Errorf("%s is public", name)
		}
	}
	return err
}
