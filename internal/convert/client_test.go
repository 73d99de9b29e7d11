package convert_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	gohf "github.com/gomlx/go-huggingface/hub"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	shared "github.com/df11-convert/df11-convert/internal/testing/world"
)

// TestAnotherClientReadsWhatWasPublished downloads a published repo with a client that shares no
// code with ours, and compares the bytes with the hub's.
func TestAnotherClientReadsWhatWasPublished(t *testing.T) {
	onServers(t, func(t *testing.T, ways hubtest.Option) {
		w := newWorld(t, hubtest.NewLlama(1, hubtest.ModelOptions{Hidden: 32, Vocab: 256, Layers: 3}), ways)
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

// TestOldBytesAreNotPublished checks a server that lists a changed file by its new hash and keeps its
// old bytes. Another client reads them back, so the run doesn't say that it has published.
func TestOldBytesAreNotPublished(t *testing.T) {
	w := newWorld(t, small(), hubtest.WithWays(hubtest.Ways{OldBytes: true}))
	w.mustConvert(t) // nothing has changed yet
	other := hubtest.NewLlama(99, hubtest.ModelOptions{Hidden: 32, Vocab: 256, Layers: 2})
	recommit(w.Server, sourceRepo, other)
	before := w.target()
	_, err := w.convert(t.Context(), t, t.TempDir())
	sameSize := 0
	for name, f := range w.target() {
		if was, ok := before[name]; ok && was.Size == f.Size && was.SHA256 != f.SHA256 {
			sameSize++
		}
	}
	wrong, ok := errors.AsType[*hub.WitnessError](err)
	if sameSize == 0 || ok != (sameSize > 0) || ok && len(wrong.Files) == 0 {
		t.Errorf("%d files of equal size: %v", sameSize, err)
	}
}
