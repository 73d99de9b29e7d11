package pipeline_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/pipeline"
	"github.com/df11-convert/df11-convert/verify"
)

// bigHead is a model of 35 MB, of which two tensors take 15 MB each.
func bigHead(order hubtest.Order) *hubtest.Model {
	return hubtest.NewLlama(13, hubtest.ModelOptions{
		Hidden: 256, Heads: 4, Vocab: 30_000, Layers: 3, ShardBytes: 24_000_000, Order: order, Extra: noPicture,
	})
}

// mediumHead is the same with 4 MB in each of the two.
func mediumHead() *hubtest.Model {
	return hubtest.NewLlama(13, hubtest.ModelOptions{Hidden: 256, Heads: 4, Vocab: 8000, Layers: 2, Extra: noPicture})
}

// aheadOfDisk bounds what a fetcher has read and can't go on from: ranges, blocks, blocks that are
// not synced, and what came behind the last mark of the hash.
const aheadOfDisk = 9 << 20

// onDisk makes every spool a file.
func onDisk(o *pipeline.Options) { o.SpoolMemory = -1 }

// keepCases are the ways in which tensors are fetched, with the runs that a conversion takes.
var keepCases = map[string]struct {
	order hubtest.Order
	runs  []func(*pipeline.Options)
	kills []int // after so many percent of the reads: in the first or in the last of the large tensors
}{
	"in order": {hubtest.OrderModel, []func(*pipeline.Options){onDisk}, []int{40, 80}},
	"part":     {hubtest.OrderModel, []func(*pipeline.Options){inPart, finishing}, []int{80}},
	"by task":  {hubtest.OrderScattered, []func(*pipeline.Options){inPartByTask, finishing}, []int{80}},
}

func inPartByTask(o *pipeline.Options) { o.Part, o.Disk = spans.Part{I: 1, N: 1}, 35_000_000 }
func finishing(o *pipeline.Options)    { o.Finish = true }

// killed runs a conversion up to the k-th read of weights and gives a work folder as a kill at that moment leaves it.
func (w *world) killed(t *testing.T, k int, change ...func(*pipeline.Options)) (work string) {
	t.Helper()
	work, err := w.killedIn(t, t.TempDir(), k, change...)
	if !errors.Is(err, errStop) {
		t.Fatalf("kill at %d: %v", k, err)
	}
	return work
}

// killedIn does the same with a run that goes on in a folder. It may end before it is killed.
func (w *world) killedIn(t *testing.T, live string, k int, change ...func(*pipeline.Options)) (work string, err error) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	dead := t.TempDir()
	var once sync.Once
	w.Inject(hubtest.Fault{Host: hubtest.HostCDN, Method: "GET", Path: "/repos/*", Nth: k, Action: func(x *hubtest.Exchange) {
		once.Do(func() { copyAsKilled(t, live, dead) })
		cancel(errStop)
		x.Next(x.ResponseWriter)
	}})
	_, err = w.convert(ctx, t, live, change...)
	w.ClearFaults()
	noGoroutines(t)
	return dead, err
}

// copyAsKilled copies a folder while a run works in it and waits for a read that does not come: once the run has come to a
// halt, and nothing changes meanwhile, the copy is what a kill would leave.
func copyAsKilled(t *testing.T, from, to string) {
	for before := []string{"?"}; ; {
		now := listing(t, from)
		if slices.Equal(before, now) {
			return
		}
		if err := errors.Join(os.RemoveAll(to), os.CopyFS(to, os.DirFS(from))); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
			return
		}
		before = now
		if after := listing(t, from); !slices.Equal(after, now) {
			before = nil
		}
		time.Sleep(20 * time.Millisecond) // longer than the clock of any file system
	}
}

// listing tells for each file below a folder when it was last written.
func listing(t *testing.T, dir string) (files []string) {
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		files = append(files, fmt.Sprint(name, info.Size(), info.ModTime()))
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	return files
}

// sampled leaves out a case of many that are alike, where there is little time.
func sampled(t *testing.T, chosen bool) {
	if testing.Short() && !chosen {
		t.Skip("-short takes a sample")
	}
}

// TestKilledSpoolIsTakenUp: after a kill in the middle of a large tensor, a run on the same disk reads only what was not
// on disk yet, and the bytes are the same as ever.
func TestKilledSpoolIsTakenUp(t *testing.T) {
	for name, c := range keepCases {
		t.Run(name, func(t *testing.T) {
			sampled(t, name == "part")
			want := reference(t, bigHead(c.order))
			base := newWorld(t, bigHead(c.order))
			if _, err := base.convert(t.Context(), t, t.TempDir(), onDisk, c.runs[0]); err != nil {
				t.Fatal(err)
			}
			once, reads := base.sourceBytes(), base.Count("GET", "/repos/*")
			for _, share := range c.kills {
				w := newWorld(t, bigHead(c.order))
				work := w.killed(t, reads*share/100, onDisk, c.runs[0])
				if _, err := w.convert(t.Context(), t, work, onDisk, c.runs[0]); err != nil {
					t.Fatal(err)
				}
				t.Logf("killed at %d %%: %d bytes read in both runs, %d by an undisturbed one", share, w.sourceBytes(), once)
				if twice := w.sourceBytes() - once; twice > aheadOfDisk {
					t.Errorf("killed at %d %%: %d bytes were read twice", share, twice)
				}
				for _, run := range c.runs[1:] {
					w.mustConvert(t, run)
				}
				sameWeights(t, w, want)
			}
		})
	}
}

// TestStoppedSpoolIsTakenUp: a run that is stopped in good order keeps what it has, without ever syncing on its way.
func TestStoppedSpoolIsTakenUp(t *testing.T) {
	want := reference(t, bigHead(hubtest.OrderModel))
	w, work := newWorld(t, bigHead(hubtest.OrderModel)), t.TempDir()
	interrupted(t, w, work, func(stop func()) {
		w.change = append(w.change, onDisk)
		w.Inject(hubtest.Fault{Host: hubtest.HostCDN, Method: "GET", Path: "/repos/*", Nth: 900, Action: func(x *hubtest.Exchange) { stop(); x.Next(x.ResponseWriter) }})
	})
	if _, err := w.convert(t.Context(), t, work); err != nil {
		t.Fatal(err)
	}
	if twice := w.sourceBytes() - bigHead(hubtest.OrderModel).Size(); twice > aheadOfDisk {
		t.Errorf("%d bytes were read twice", twice)
	}
	sameFiles(t, w.target(), want)
}

// TestCompleteSpoolIsTakenUp: a unit that was complete and could not be converted is converted without being read again,
// while the fetcher passes its bytes.
func TestCompleteSpoolIsTakenUp(t *testing.T) {
	for name, c := range keepCases {
		t.Run(name, func(t *testing.T) {
			sampled(t, name == "part")
			want := reference(t, bigHead(c.order))
			w, work := newWorld(t, bigHead(c.order)), t.TempDir()
			_, err := w.convert(t.Context(), t, work, onDisk, c.runs[0], func(o *pipeline.Options) { o.GPU = brokenGPU{} })
			if !errors.Is(err, errStop) {
				t.Fatal(err)
			}
			for _, run := range c.runs {
				if _, err := w.convert(t.Context(), t, work, onDisk, run); err != nil {
					t.Fatal(err)
				}
			}
			sameWeights(t, w, want)
		})
	}
}

// brokenGPU is a second decoder that fails.
type brokenGPU struct{}

func (brokenGPU) Compare(context.Context, verify.Arrays, int64, io.ReaderAt, verify.CompareOptions) error {
	return errStop
}
func (brokenGPU) Describe() (string, []string) { return "broken", nil }

// TestSpoiledSpool: of a kept spool nothing is believed that its record does not cover: bytes behind the recorded ones, a
// changed byte, a file that is cut, a record of something else. The bytes of the result are the same as ever.
func TestSpoiledSpool(t *testing.T) {
	want := reference(t, mediumHead())
	for name, spoil := range map[string]func(t *testing.T, data, record string){
		"garbage behind": func(t *testing.T, data, record string) {
			b, n := readFile(t, data), heldEnd(t, record)
			for i := n; i < int64(len(b)); i++ {
				b[i] = 0xaa
			}
			writeFile(t, data, b)
		},
		"a bit": func(t *testing.T, data, record string) {
			b := readFile(t, data)
			b[heldEnd(t, record)/2] ^= 1
			writeFile(t, data, b)
		},
		"cut":           func(t *testing.T, data, record string) { writeFile(t, data, readFile(t, data)[:heldEnd(t, record)-1]) },
		"no data":       func(t *testing.T, data, _ string) { remove(t, data) },
		"no record":     func(t *testing.T, _, record string) { remove(t, record); remove(t, note(record)) },
		"only a note":   func(t *testing.T, _, record string) { remove(t, record) },
		"only a record": func(t *testing.T, _, record string) { remove(t, note(record)) },
		"torn record": func(t *testing.T, _, record string) {
			remove(t, note(record))
			b := readFile(t, record)
			writeFile(t, record, b[:len(b)-9])
		},
		"another plan":  edit(`"plan":"`, `"plan":"0`),
		"another model": edit(`"output":"`, `"output":"x`),
		"too many":      edit(`"n":`, `"n":9`),
		"elsewhere":     edit(`"at":`, `"at":1`),
	} {
		t.Run(name, func(t *testing.T) {
			sampled(t, name == "a bit" || name == "cut")
			w := newWorld(t, mediumHead())
			work := w.killed(t, 340, onDisk)
			records, err := filepath.Glob(filepath.Join(work, ".df11-convert", "spool-*.json"))
			if err != nil || len(records) != 1 {
				t.Fatal(records, err)
			}
			spoil(t, strings.TrimSuffix(records[0], "json")+"data", records[0])
			if _, err := w.convert(t.Context(), t, work, onDisk); err != nil {
				t.Fatal(err)
			}
			sameFiles(t, w.target(), want)
			checkPublished(t, w)
		})
	}
}

// heldEnd is how many bytes a record with one run names.
func heldEnd(t *testing.T, record string) int64 {
	t.Helper()
	var r struct{ Runs []struct{ At, N int64 } }
	if err := json.Unmarshal(readFile(t, record), &r); err != nil || len(r.Runs) != 1 || r.Runs[0].At != 0 || r.Runs[0].N < 1<<20 {
		t.Fatal(r, err)
	}
	return r.Runs[0].N
}

// edit changes record and note.
func edit(old, new string) func(*testing.T, string, string) {
	return func(t *testing.T, _, record string) {
		for _, name := range []string{record, note(record)} {
			if _, err := os.Stat(name); err != nil {
				continue // there is a note only of what is not recorded
			}
			writeFile(t, name, []byte(strings.Replace(string(readFile(t, name)), old, new, 1)))
		}
	}
}

// note is the name of the note beside a record.
func note(record string) string { return strings.TrimSuffix(record, "json") + "note" }

func remove(t *testing.T, name string) {
	t.Helper()
	if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// TestSpoolsOfAnotherCommit: spools of another commit of the source are deleted.
func TestSpoolsOfAnotherCommit(t *testing.T) {
	w := newWorld(t, mediumHead())
	work := w.killed(t, 340, onDisk)
	w.AddModel(sourceRepo, small())
	s := &failingSource{}
	s.n.Store(1)
	_, err := w.convert(t.Context(), t, work, onDisk, func(o *pipeline.Options) { s.Source, o.Source = o.Source, s })
	if !errors.Is(err, errSourceFails) {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(filepath.Join(work, ".df11-convert", "spool-*")); err != nil || len(left) > 0 {
		t.Errorf("%v are left: %v", left, err)
	}
}
