package pipeline_test

import (
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/pipeline"
)

// manyOutputs is a model of 14 MB whose units give files of 1.2 MB.
func manyOutputs() *hubtest.Model {
	return hubtest.NewLlama(17, hubtest.ModelOptions{Hidden: 256, Heads: 4, Vocab: 64, Layers: 8, Extra: noPicture})
}

// TestLeftoversKeepToTheDisk: outputs that a stopped run has finished and not uploaded count against the disk budget of
// the next one until they are.
func TestLeftoversKeepToTheDisk(t *testing.T) {
	t.Parallel()
	const disk = 6_000_000
	want := reference(t, manyOutputs())
	w, work := newWorld(t, manyOutputs()), filepath.Join(t.TempDir(), "work")
	w.change = append(w.change, func(o *pipeline.Options) { o.Disk = disk })
	finished := make(chan struct{})
	interrupted(t, w, work, func(stop func()) {
		w.change = append(w.change, func(o *pipeline.Options) { o.Uploads = 4 })
		w.log.hook = func(string) {
			if len(w.log.files) == 5 {
				close(finished)
			}
		}
		w.Inject(hubtest.Fault{Method: "PUT", Times: always, Action: func(x *hubtest.Exchange) {
			<-finished
			stop()
			hubtest.Error(503, "", "")(x)
		}})
	})
	if left, err := filepath.Glob(filepath.Join(work, ".df11-convert", "files", "*.safetensors")); err != nil || len(left) < 5 {
		t.Fatal(left, err)
	}
	w.change = w.change[:1]
	var most atomic.Int64
	w.Inject(hubtest.Fault{Method: "PUT", Times: 2, Action: func(x *hubtest.Exchange) {
		for before := []string{"?"}; !slices.Equal(before, listing(t, work)); { // as far as it comes without an upload
			before = listing(t, work)
			time.Sleep(50 * time.Millisecond)
		}
		most.Store(max(most.Load(), folderBytes(work)))
		x.Next(x.ResponseWriter)
	}})
	if _, err := w.convert(t.Context(), t, work); err != nil {
		t.Fatal(err)
	}
	if n := most.Load(); n > disk+journalRoom || n < 4_000_000 {
		t.Errorf("%d bytes on disk, %d are allowed", n, disk)
	}
	sameFiles(t, w.target(), want)
}
