package pipeline_test

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/pipeline"
)

// corrupted makes one bit wrong in the answer to the n-th read of weights.
func (w *world) corrupted(n int) {
	w.Inject(hubtest.Fault{Name: "corrupt", Nth: n})
}

// TestCorruptThenKilled: a byte that was wrong before a kill is in no output, wherever it lies, although the next run takes up
// the spool that holds it.
func TestCorruptThenKilled(t *testing.T) {
	t.Parallel()
	want := reference(t, mediumHead())
	for n := 228; n < 340; n += stride(56) {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			w := newWorld(t, mediumHead())
			w.corrupted(n)
			work := w.killed(t, 340, onDisk)
			if _, err := w.convert(t.Context(), t, work, onDisk); err != nil {
				t.Fatal(err)
			}
			sameFiles(t, w.target(), want)
			checkPublished(t, w)
		})
	}
}

// scattered is a model of 7 MB of which every unit lies in many files, so that many spools are open at once.
func scattered() *hubtest.Model {
	return hubtest.NewLlama(19, hubtest.ModelOptions{
		Hidden: 128, Vocab: 6000, Layers: 6, ShardBytes: 1_500_000, Order: hubtest.OrderScattered, Extra: noPicture,
	})
}

// TestKilledOverAWrongByte: runs are killed at random reads, one after the other in the same folder, with spools on disk or in
// memory. In one of them a byte is wrong, in some an upload takes long. The last run ends with the same bytes as ever.
func TestKilledOverAWrongByte(t *testing.T) {
	t.Parallel()
	models := []func() *hubtest.Model{mediumHead, scattered}
	var want []map[string]hubtest.File
	var reads []int
	for _, m := range models {
		w := newWorld(t, m())
		w.mustConvert(t)
		want, reads = append(want, w.target()), append(reads, w.Count("GET", "/repos/*"))
	}
	for _, seed := range seeds(t, 3, 60) {
		t.Run(fmt.Sprintf("DF11_SEED=%d", seed), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 2))
			i := rnd.IntN(len(models))
			w, work := newWorld(t, models[i]()), t.TempDir()
			w.change = append(w.change, func(o *pipeline.Options) {
				o.Memory.Spools = []int64{-1, -1, 1 << 20, 0}[rnd.IntN(4)]
			})
			kills := 1 + rnd.IntN(3)
			wrong := rnd.IntN(kills)
			for n := range kills {
				k := 1 + rnd.IntN(reads[i])
				if n == wrong {
					w.corrupted(1 + rnd.IntN(k))
				}
				if rnd.IntN(2) == 0 {
					w.Inject(hubtest.Fault{Method: "PUT", Action: func(x *hubtest.Exchange) {
						time.Sleep(300 * time.Millisecond) // long enough to be there when the kill comes
						x.Next(x.ResponseWriter)
					}})
				}
				dead, err := w.killedIn(t, work, k)
				t.Logf("killed at read %d of %d: %v", k, reads[i], err)
				if err == nil {
					return // it was done before; the next would not go on, but refresh
				}
				if rnd.IntN(3) > 0 {
					work = dead // else it was stopped in good order
				}
			}
			if _, err := w.convert(t.Context(), t, work); err != nil {
				t.Fatal(err)
			}
			sameFiles(t, w.target(), want[i])
			checkPublished(t, w)
		})
	}
}

// TestCorruptCompleteSpool: a wrong byte in a spool that is complete gets into no output, whether the journal names what is in
// the spool or was lost, and whether a hash has seen the byte or it came by ranges.
func TestCorruptCompleteSpool(t *testing.T) {
	t.Parallel()
	want := reference(t, mediumHead())
	streamed := func(*pipeline.Options) {}
	for _, c := range []struct {
		lost  bool
		first func(*pipeline.Options)
	}{{false, streamed}, {true, streamed}, {false, inPart}} {
		w, work := newWorld(t, mediumHead()), t.TempDir()
		w.corrupted(60)
		_, err := w.convert(t.Context(), t, work, onDisk, c.first, func(o *pipeline.Options) { o.GPU = brokenGPU{} })
		if !errors.Is(err, errStop) || w.FaultsActed("corrupt") == 0 {
			t.Fatal(err)
		}
		w.ClearFaults()
		if c.lost {
			remove(t, filepath.Join(work, journalFile))
		}
		if _, err := w.convert(t.Context(), t, work, onDisk); err != nil {
			t.Fatal(err)
		}
		sameFiles(t, w.target(), want)
		checkPublished(t, w)
	}
}

// TestRangesThenStreamed: what was made of ranges is proved, and not called streamed because a later run streams the rest.
func TestRangesThenStreamed(t *testing.T) {
	t.Parallel()
	want := reference(t, mediumHead())
	for corrupt, integrity := range map[bool]metadata.Integrity{false: metadata.Proof, true: metadata.Streamed} {
		w, work := newWorld(t, mediumHead()), t.TempDir()
		if corrupt {
			w.corrupted(200)
		}
		if _, err := w.convert(t.Context(), t, work, onDisk, inPart); err != nil {
			t.Fatal(err)
		}
		if corrupt && w.FaultsActed("corrupt") == 0 {
			t.Error("no byte was wrong")
		}
		w.ClearFaults()
		if _, err := w.convert(t.Context(), t, work, onDisk); err != nil {
			t.Fatal(err)
		}
		sameWeights(t, w, want)
		for _, f := range w.manifest(t).Source.Files {
			if f.Integrity != integrity {
				t.Errorf("%s: %s, want %s", f.Path, f.Integrity, integrity)
			}
		}
	}
}

// TestWrongFileLeavesNoTensors: a file that turns out to be wrong takes its tensors with it from the spools of units that other
// files belong to as well, so that the next attempt does not meet them again.
func TestWrongFileLeavesNoTensors(t *testing.T) {
	t.Parallel()
	w := newWorld(t, scattered())
	w.corrupted(20)
	var wrong atomic.Int64
	_, err := w.convert(t.Context(), t, t.TempDir(), onDisk, func(o *pipeline.Options) {
		o.Log = slog.New(logHook(func(r slog.Record) {
			if r.Level == slog.LevelWarn {
				wrong.Add(1)
			}
		}))
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := wrong.Load(); n != 1 {
		t.Errorf("%d attempts met a wrong byte", n)
	}
	sameFiles(t, w.target(), reference(t, scattered()))
	checkPublished(t, w)
}
