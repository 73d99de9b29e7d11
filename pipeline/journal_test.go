package pipeline_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/target"
	"github.com/df11-convert/df11-convert/pipeline"
)

// TestNewerJournal: a journal of a newer program ends the run with an error that says what can be done, in a folder and in a
// repo. Neither is changed.
func TestNewerJournal(t *testing.T) {
	refused := func(err error) {
		t.Helper()
		if e := (*ledger.VersionError)(nil); !errors.As(err, &e) || e.Version != 4 || !strings.Contains(e.Hint(), "newer") {
			t.Errorf("got %v", err)
		}
	}
	newer := []byte(`{"version":4,"plan":"0","source":"` + sourceRepo + `"}` + "\n" + `{"news":1}` + "\n")
	w, out := newWorld(t, small()), t.TempDir()
	writeFile(t, filepath.Join(out, journalFile), newer)
	writeFile(t, filepath.Join(out, ".df11-convert", "lock"), nil)
	writeFile(t, filepath.Join(out, ".df11-convert", "spool-0123456789abcdef.data"), []byte("kept"))
	before := folder(t, out)
	_, err := w.convert(t.Context(), t, out, inFolder(out))
	refused(err)
	if !maps.Equal(folder(t, out), before) {
		t.Errorf("the folder was changed: %v", listing(t, out))
	}

	head := w.AddRepo(targetRepo, map[string][]byte{".df11/part-1-of-1.json": newer})
	_, err = w.convert(t.Context(), t, t.TempDir())
	refused(err)
	if w.Head(targetRepo, "main") != head {
		t.Error("the repo was changed")
	}
}

// TestOnlyOutputsOfThePlanAreDone: what a journal or a manifest tells of outputs is not believed where the plan has no such
// output or units, and figures for the picture are left out where they make no sense. The result is the same as ever.
func TestOnlyOutputsOfThePlanAreDone(t *testing.T) {
	m := hubtest.NewLlama(7, hubtest.ModelOptions{Hidden: 32, Vocab: 256, Layers: 3})
	want := localResult(t, m)
	stopped := func(t *testing.T) (source, out string) {
		source, out = writeModel(t, m), t.TempDir()
		finished, log := make(chan struct{}), newOutputLog()
		log.hook = func(string) {
			if len(log.files) == 1 {
				close(finished)
			}
		}
		_, err := convertLocal(t, source, out, plan.Options{}, func(o *pipeline.Options) { o.GPU, o.Log = stopAfter(1, finished), slog.New(log) })
		if !errors.Is(err, errStop) {
			t.Fatal(err)
		}
		return source, out
	}
	for name, edit := range map[string]func(o *ledger.Output){
		"no units":       func(o *ledger.Output) { o.Units = nil },
		"one unit more":  func(o *ledger.Output) { o.Units = append(o.Units, o.Units[0]) },
		"another unit":   func(o *ledger.Output) { o.Units[0].Path = "x" },
		"another number": func(o *ledger.Output) { o.Units[0].Weights++ },
		"unknown status": func(o *ledger.Output) { o.Units[0].Status = "x" },
		"no sha256":      func(o *ledger.Output) { o.Size, o.SHA256 = o.Size+1, "" }, // a file that isn't there as it should be has none
		"another output": func(o *ledger.Output) {
			o.Path, o.Size, o.SHA256 = "stray", 1, fmt.Sprintf("%x", sha256.Sum256([]byte("s")))
		},
		"exponents beyond": func(o *ledger.Output) { o.Units[0].Exponents.First = math.MaxInt },
	} {
		t.Run(name, func(t *testing.T) {
			source, out := stopped(t)
			writeFile(t, filepath.Join(out, "stray"), []byte("s"))
			var edited bytes.Buffer
			for line := range bytes.Lines(readFile(t, filepath.Join(out, journalFile))) {
				var x struct {
					Output *ledger.Output `json:"output"`
				}
				must(t, json.Unmarshal(line, &x))
				if x.Output != nil && len(x.Output.Units) > 0 {
					edit(x.Output)
					b, err := json.Marshal(x)
					must(t, err)
					line = append(b, '\n')
				}
				edited.Write(line)
			}
			writeFile(t, filepath.Join(out, journalFile), edited.Bytes())
			unlisted := name == "no sha256" || name == "another output" // the file may be anybody's
			_, err := convertLocal(t, source, out, plan.Options{}, nil)
			if conflict := (*target.ConflictError)(nil); unlisted && errors.As(err, &conflict) {
				_, err = convertLocal(t, source, out, plan.Options{}, forced)
			}
			must(t, err)
			remove(t, filepath.Join(out, "stray"))
			if name != "exponents beyond" { // the picture lacks them
				sameFolder(t, out, want)
			}
		})
	}
	t.Run("manifest", func(t *testing.T) {
		source, out := writeModel(t, m), localResult(t, m)
		manifest, err := metadata.ParseManifest(readFile(t, filepath.Join(out, metadata.ManifestName)), 0)
		must(t, err)
		manifest.Units[0].File = manifest.Units[1].File
		b, err := manifest.Marshal()
		must(t, err)
		writeFile(t, filepath.Join(out, metadata.ManifestName), b)
		if _, err := convertLocal(t, source, out, plan.Options{}, nil); err != nil {
			t.Fatal(err)
		}
		sameFolder(t, out, want)
	})
}
