package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/spans"
	shared "github.com/df11-convert/df11-convert/internal/testing/world"
	"github.com/df11-convert/df11-convert/pipeline"
)

// severalTensors is a model of 3.7 MB without a tensor above 512 KiB: what lies whole in
// a spool differs from what was in progress.
func severalTensors(order hubtest.Order) *hubtest.Model {
	return hubtest.NewLlama(13, hubtest.ModelOptions{
		Hidden: 128, Intermediate: 1024, Vocab: 2000, Layers: 3, ShardBytes: 2_000_000, Order: order, Extra: noPicture,
	})
}

// mediumHead is a model of 11 MB with two tensors of 4 MB each.
func mediumHead() *hubtest.Model {
	return hubtest.NewLlama(13, hubtest.ModelOptions{Hidden: 256, Heads: 4, Vocab: 8000, Layers: 2, Extra: noPicture})
}

// underWay bounds what a fetcher of severalTensors has read of tensors that are not whole yet: one
// tensor, and the ranges that the client asks for ahead: those that all streams share, and the one
// of each.
const underWay = 2000*128*2 + aheadBytes + rangeBytes

// onDisk makes every spool a file.
func onDisk(o *pipeline.Options) { o.Memory.Spools = 0 }

// journalFile is the journal of a whole conversion in its folder.
const journalFile = ".df11-convert/part-1-of-1.json"

// readJournal reads the journal of a work folder, which is empty if there is none.
func readJournal(t *testing.T, p *plan.Plan, work string) *ledger.Ledger {
	t.Helper()
	l := ledger.New(p.Digest(), false)
	journal, err := os.ReadFile(filepath.Join(work, journalFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	l.Read(ledger.ReadJournal(journal))
	return l
}

// kept counts the source bytes that a work folder saves the next run: of outputs that are finished,
// and of tensors that the journal says are whole in a spool that is still there, which that of a
// file without a name is not.
func kept(t *testing.T, p *plan.Plan, work string) (n int64) {
	t.Helper()
	l := readJournal(t, p, work)
	for _, o := range spans.Outputs(p) {
		_, gone := os.Stat(filepath.Join(work, ".df11-convert", names.KeptSpool(o.Path)))
		for x := range o.Tensors() {
			whole := func(h ledger.Tensor) bool { return h.At == x.At }
			if l.Done(o.Path) || gone == nil && slices.ContainsFunc(l.Tensors(o.Path), whole) {
				n += x.Length
			}
		}
	}
	return n
}

// killed runs a conversion up to the k-th read of weights, and returns a work folder as a kill at
// that moment leaves it.
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
	w.Inject(hubtest.Fault{Host: hubtest.HostCDN, Method: "GET", Path: "/repos/*", Nth: k, Times: hubtest.Always, Action: func(x *hubtest.Exchange) {
		once.Do(func() { // later reads wait too, this one among them if it is asked again
			if w.beforeKill != nil {
				w.beforeKill(live)
			}
			copyAsKilled(t, live, dead)
			cancel(errStop)
		})
		x.Next(x.ResponseWriter)
	}})
	_, err = w.convert(ctx, t, live, change...)
	w.ClearFaults()
	noGoroutines(t)
	w.era++
	return dead, err
}

// copyAsKilled copies a folder while a run works in it and waits for a read that does not come:
// once the run has come to a halt, and nothing changes meanwhile, the copy is what a kill would
// leave.
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

// listing returns, for each file below a folder, when it was last written.
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

// catchUp waits until the journal of a run names all that was sent so far but for some bytes.
func (w *world) catchUp(t *testing.T, p *plan.Plan, work string, but int64) {
	t.Helper()
	for begun := time.Now(); kept(t, p, work) < w.sourceBytes()-but; time.Sleep(time.Millisecond) {
		if time.Since(begun) > patience {
			t.Errorf("the journal names %d bytes, %d were sent", kept(t, p, work), w.sourceBytes())
			return
		}
	}
}

// killedInSpool runs a conversion of severalTensors with all reads of an undisturbed run. It returns
// a work folder as a kill in the middle of an output leaves it: the journal names everything it can,
// and tensors in a spool.
func (w *world) killedInSpool(t *testing.T, p *plan.Plan, reads int, change ...func(*pipeline.Options)) (work string) {
	t.Helper()
	w.beforeKill = func(work string) {
		w.catchUp(t, p, work, underWay)
		inSpool := func(o *spans.Output) bool { return len(readJournal(t, p, work).Tensors(o.Path)) > 0 }
		for begun := time.Now(); !slices.ContainsFunc(spans.Outputs(p), inSpool); time.Sleep(time.Millisecond) {
			if time.Since(begun) > patience {
				t.Error("the journal names no tensor in a spool")
				return
			}
		}
	}
	return w.killed(t, reads*8/10, append(change, onDisk)...)
}

// splitLayers makes a unit of every module of a layer, so that norms belong to no unit but to a
// file of their own.
var splitLayers = catalog.PatternDict{
	{Regex: `lm_head|model\.embed_tokens`},
	{Regex: `model\.layers\.\d+\.self_attn`, Attrs: []string{"q_proj", "k_proj", "v_proj", "o_proj"}},
	{Regex: `model\.layers\.\d+\.mlp\.(gate_proj|up_proj|down_proj)`},
}

func remove(t *testing.T, name string) {
	t.Helper()
	if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// TestSpoolsOfAnotherCommit checks that spools of another commit of the source are deleted.
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

// TestKeptSpoolsBlockNothing checks that a run gives up a kept spool if the disk has no space for
// another one, and an output that is read earlier must be made again. Otherwise both would wait
// forever.
func TestKeptSpoolsBlockNothing(t *testing.T) {
	t.Parallel()
	m := severalTensors(hubtest.OrderModel)
	base := newWorld(t, m)
	base.mustConvert(t, onDisk)
	w := newWorld(t, m)
	p, keep := w.planned(t), func(o *pipeline.Options) { o.OutDir, o.Push = o.WorkDir, nil }
	out := w.killedInSpool(t, p, base.Count("GET", "/repos/*"), keep)
	const lost = "model_layers_0.safetensors"
	if !readJournal(t, p, out).Done(lost) {
		t.Fatal("the first layer was not done")
	}
	remove(t, filepath.Join(out, lost))
	outputs := spans.Outputs(p)
	disk := budget.NewDemand(outputs, spans.Segments(outputs, len(p.Source().Weights)), false, false, 0).Least()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := w.convert(ctx, t, out, onDisk, keep, func(o *pipeline.Options) { o.Disk = disk }); err != nil {
		t.Fatal(err)
	}
	for _, o := range outputs {
		if got := shared.Sum(shared.Read(t, filepath.Join(out, o.Path))); got != base.target()[o.Path].SHA256 {
			t.Errorf("%s differs", o.Path)
		}
	}
}
