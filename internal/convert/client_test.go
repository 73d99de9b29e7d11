package convert_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	gohf "github.com/gomlx/go-huggingface/hub"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/convert"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/publish"
	shared "github.com/df11-convert/df11-convert/internal/testing/world"
)

// TestAnotherClientReadsWhatWasPublished downloads a published repo with a client that shares no
// code with ours, and compares the bytes with the hub's.
func TestAnotherClientReadsWhatWasPublished(t *testing.T) {
	onServers(t, func(t *testing.T, ways hubtest.Option) {
		w := newWorld(t, hubtest.NewLlama(1, hubtest.ModelOptions{Hidden: 32, Vocab: 256, Layers: 3}), ways, listening)
		w.mustConvert(t)
		if err := w.downloadByAnother(t); err != nil {
			t.Error(err)
		}
	})
}

// downloadByAnother downloads the target with a client of the same protocol. Its version 0.4.0
// returns a cut download as a success, so the bytes decide. Its downloads race with one another, and
// its limit of transfers can lose a wake-up, so it downloads one file at a time.
func (w *world) downloadByAnother(t *testing.T) error {
	repo := gohf.New(targetRepo).WithEndpoint(w.URL).WithAuth(testToken).WithCacheDir(t.TempDir())
	repo.Verbosity, repo.MaxParallelDownload = 0, 0
	var listed []string
	for name, err := range repo.IterFileNames() {
		shared.Must(t, err)
		listed = append(listed, name)
	}
	if here := len(w.Files(targetRepo, "main")); len(listed) != here || !slices.Contains(listed, "config.json") {
		return fmt.Errorf("%d files are listed, %d are there", len(listed), here)
	}
	for _, name := range listed {
		paths, err := repo.DownloadFilesCtx(t.Context(), name)
		if err != nil {
			return err
		}
		want, err := w.ReadFile(targetRepo, "main", name)
		shared.Must(t, err)
		if got, err := os.ReadFile(paths[0]); err != nil || !bytes.Equal(got, want) {
			return fmt.Errorf("%s: %d bytes of %d, %w", name, len(got), len(want), err)
		}
	}
	return nil
}

// flipped returns the files of a model with another lowest bit in each weight: everything made of it
// has the size that it had, and other bytes.
func flipped(m *hubtest.Model) map[string][]byte {
	files := m.Files()
	for name, b := range files {
		if strings.HasSuffix(name, ".safetensors") {
			b = bytes.Clone(b)
			for i := 8 + binary.LittleEndian.Uint64(b); i < uint64(len(b)); i += 2 {
				b[i] ^= 1
			}
			files[name] = b
		}
	}
	return files
}

// TestOldBytesAreNotPublished updates a target with files of equal sizes, on a server that lists a
// path's newest SHA-256 for all branches, and lets main keep the old bytes of what came to another
// branch. However the update comes to its end, a run that ends well has published the new bytes.
func TestOldBytesAreNotPublished(t *testing.T) {
	t.Parallel()
	fresh := newWorld(t, small())
	fresh.Push(sourceRepo, "main", flipped(small()))
	fresh.mustConvert(t)
	want := fresh.target()
	toUpdate := func(t *testing.T) *world {
		w := newWorld(t, small(), hubtest.WithWays(hubtest.Ways{OneRow: true}))
		w.mustConvert(t)
		w.Push(sourceRepo, "main", flipped(small()))
		return w
	}
	t.Run("in one run", func(t *testing.T) {
		w := toUpdate(t)
		w.mustConvert(t)
		sameWeights(t, w.target(), want)
	})
	t.Run("in parts, by force", func(t *testing.T) {
		w := toUpdate(t)
		for _, change := range []func(*convert.Options){part(1, 2), part(2, 2), finishing} {
			w.mustConvert(t, forced, change)
		}
		sameWeights(t, w.target(), want)
	})
	for k := 1; ; k++ { // after the k-th commit
		var err error
		ended := t.Run(fmt.Sprintf("stopped after commit %d", k), func(t *testing.T) {
			w, work := toUpdate(t), t.TempDir()
			err = w.stopped(t, work, func(stop func()) {
				w.Inject(hubtest.Fault{Method: "POST", Path: "/api/models/*/commit/*", Nth: k, Action: func(x *hubtest.Exchange) {
					x.Next(x.ResponseWriter)
					stop()
				}})
			})
			w.mustConvert(t, forced) // without force, files that another run has brought are in the way
			sameWeights(t, w.target(), want)
		})
		if !ended || err == nil {
			if k < 4 {
				t.Errorf("the run ended with %v after %d commits", err, k)
			}
			break
		}
	}
}

// TestWhatIsSeenWrongIsTakenApart checks a server that sends other bytes than those that this run, or
// an earlier one, has uploaded. The run doesn't end well, main is no model then, and the next run
// publishes what was wrong again.
func TestWhatIsSeenWrongIsTakenApart(t *testing.T) {
	t.Parallel()
	fresh := newWorld(t, small())
	fresh.Push(sourceRepo, "main", flipped(small()))
	fresh.mustConvert(t)
	want := fresh.target()
	var outputs []string
	for name := range want {
		if strings.HasSuffix(name, ".safetensors") {
			outputs = append(outputs, name)
		}
	}
	for _, resumed := range []bool{false, true} {
		w, work := newWorld(t, small()), t.TempDir()
		w.mustConvert(t)
		w.Push(sourceRepo, "main", flipped(small()))
		old := w.Head(targetRepo, "main")
		if resumed {
			err := w.stopped(t, work, func(stop func()) {
				w.Inject(hubtest.Fault{Method: "POST", Path: "/api/models/*/commit/df11-convert-*", Action: func(x *hubtest.Exchange) {
					x.Next(x.ResponseWriter)
					stop()
				}})
			})
			if err == nil || w.Head(targetRepo, "main") != old {
				t.Fatalf("the run wasn't stopped before its last commit: %v", err)
			}
			work = t.TempDir() // another machine
		}
		w.Inject(hubtest.Fault{Host: hubtest.HostCDN, Method: "GET", Path: "/repos/*", Times: hubtest.Always, Action: func(x *hubtest.Exchange) {
			if w.Head(targetRepo, "main") != old { // only the witness reads now
				x.ResponseWriter = inverted{x.ResponseWriter}
			}
			x.Next(x.ResponseWriter)
		}})
		_, err := w.convert(t.Context(), t, work)
		w.ClearFaults()
		wrong, ok := errors.AsType[*hub.WitnessError](err)
		if !ok || len(wrong.Files) != len(outputs) {
			t.Fatalf("resumed %v: %d outputs are wrong: %v", resumed, len(outputs), err)
		}
		for _, name := range append(outputs, "config.json") {
			if _, there := w.target()[name]; there {
				t.Errorf("resumed %v: %s is still there", resumed, name)
			}
		}
		if state := w.state(t); state == publish.Current {
			t.Errorf("the target is %s", state)
		}
		w.mustConvert(t)
		sameWeights(t, w.target(), want)
	}
}

// inverted sends a body with all bits turned.
type inverted struct{ http.ResponseWriter }

func (i inverted) Write(b []byte) (int, error) {
	b = bytes.Clone(b)
	for k := range b {
		b[k] = ^b[k]
	}
	return i.ResponseWriter.Write(b)
}
