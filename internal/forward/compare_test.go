package forward

import (
	"errors"
	"io"
	"log/slog"
	"slices"
	"testing"

	"github.com/df11-convert/df11-convert/encoder"
	"github.com/df11-convert/df11-convert/internal/forward/compare"
	"github.com/df11-convert/df11-convert/internal/forward/fetch"
	"github.com/df11-convert/df11-convert/internal/forward/spool"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/progress"
	"github.com/df11-convert/df11-convert/internal/publish"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// fetchedAll returns what a maker has fetched of a small local source, and the maker. read, which
// may be nil, puts something before the source.
func fetchedAll(t *testing.T, read func(model.Source, []*spans.Output) model.Source) (*maker, <-chan *fetch.Task) {
	t.Helper()
	dir := t.TempDir()
	must(t, hubtest.NewQwen2(5, hubtest.ModelOptions{Hidden: 16, Heads: 2, Vocab: 32, Layers: 1, Intermediate: 32}).Write(dir))
	src, m, err := model.OpenLocal(t.Context(), dir, plan.Options{}, 0)
	must(t, err)
	t.Cleanup(func() { src.Close() })
	p, err := plan.New(t.Context(), m.Listing, plan.Options{})
	must(t, err)
	folder, err := publish.OpenFolder(t.Context(), t.TempDir(), true, publish.NewConversion(p, publish.OriginOf(&model.Model{}), "part", false), 0o666)
	must(t, err)
	outputs, counters := world.Got(spans.Outputs(p))(t), &progress.Counters{}
	if read != nil {
		src = read(src, outputs)
	}
	tasks := fetch.NewTasks(outputs)
	complete := make(chan *fetch.Task, len(tasks))
	f := fetch.Fetcher{Source: src, Model: m, Tasks: tasks, Ledger: ledger.New("", true), Progress: counters}
	must(t, f.Run(t.Context(), complete))
	close(complete)
	means := Means{Workers: 1, Progress: counters}
	return &maker{
		Job: &Job{Log: slog.New(slog.DiscardHandler), Folder: folder, Means: means, Source: src}, fetcher: &f,
		comparer: &compare.Comparer{Means: means, Strict: true}, waiting: spool.NewBudget(0),
	}, complete
}

// The comparer refuses an output file with one wrong bit: in the header, in the arrays of a module,
// in a module that stays in BF16, or in a copied tensor.
func TestNoChangedByteIsVerified(t *testing.T) {
	w, complete := fetchedAll(t, nil)
	for task := range complete {
		if task.Path == "lm_head.safetensors" {
			task.Reasons[0] = "stays in BF16" // like a module that DF11 can't hold
			task.Counters[0] = nil
		}
		made, err := w.encode(t.Context(), task)
		must(t, err)
		t.Cleanup(made.discard)
		if err := w.equal(t.Context(), made); err != nil {
			t.Fatalf("%s: %v", task.Path, err)
		}
		b := make([]byte, 1)
		for at := int64(0); at < made.size; at += 5 { // all of them would take seconds
			_, err := made.file.ReadAt(b, at)
			must(t, err)
			b[0] ^= 1 << (at % 8)
			_, err = made.file.WriteAt(b, at)
			must(t, err)
			if w.equal(t.Context(), made) == nil {
				t.Errorf("%s: byte %d of %d is changed, and the comparer misses it", task.Path, at, made.size)
			}
			b[0] ^= 1 << (at % 8)
			_, err = made.file.WriteAt(b, at)
			must(t, err)
		}
	}
}

// otherReading is a local source whose bytes, read at random, have another bit at an offset than
// those read in order, which are hashed: as if a program had written to the mapped file in between.
type otherReading struct {
	model.Source
	off int64
}

func (s otherReading) Local(file int) io.ReaderAt { return otherBit{s.Source.Local(file), s.off} }

type otherBit struct {
	io.ReaderAt
	off int64
}

func (r otherBit) ReadAt(p []byte, off int64) (int, error) {
	n, err := r.ReaderAt.ReadAt(p, off)
	if i := r.off - off; i >= 0 && i < int64(n) {
		p[i] ^= 1
	}
	return n, err
}

// A file that equals what the source gave twice isn't verified if the hash is of something else:
// the tensors of a folder's output are read once for the hash, and again for the file. Of a unit's
// weights, the encoder notices that; of copied tensors, only this comparison does. A spool goes
// once its output is compared, unless the next run could use it.
func TestHashAndFileAreOfTheSameBytes(t *testing.T) {
	other := func(src model.Source, outputs []*spans.Output) model.Source {
		i := slices.IndexFunc(outputs, func(o *spans.Output) bool { return len(o.Copied) > 0 })
		return otherReading{src, outputs[i].Copied[0].Offset + 1}
	}
	for differs, read := range map[bool]func(model.Source, []*spans.Output) model.Source{false: nil, true: other} {
		w, complete := fetchedAll(t, read)
		compared, refused := 0, 0
		for task := range complete {
			if task.Spooled(true) {
				t.Fatalf("%s is spooled, and read only once", task.Path)
			}
			task.Spool.Kept = compared == 0
			kept, d := task.Spool.Kept, world.Got(w.encode(t.Context(), task))(t)
			c, err := w.compare(t.Context(), d)
			changed, _ := errors.AsType[*model.ChangedError](err)
			switch {
			case changed != nil && changed.Read:
				refused++
				continue
			case err != nil:
				t.Fatalf("%s: %v", task.Path, err)
			}
			if compared++; (task.Spool != nil) != kept {
				t.Errorf("%s: the spool is there: %v, it's kept: %v", task.Path, task.Spool != nil, kept)
			}
			c.discard()
		}
		if differs != (refused == 1) || compared < 2 {
			t.Errorf("another reading: %v; %d outputs were refused, %d were equal", differs, refused, compared)
		}
	}
}

// A unit's counters are freed when the unit is done. For a whole model of 811 GB they would take 3
// GB.
func TestCountersGo(t *testing.T) {
	c, err := encoder.NewCounter([]int64{4})
	must(t, err)
	c.Add(0, []byte{0, 0x3f, 0, 0x3e, 0, 0x3f, 0, 0x3d})
	x := &fetch.Task{Output: &spans.Output{Units: []*spans.Unit{{}}}, Counters: []*encoder.Counter{c}, Reasons: make([]string, 1)}
	coded, err := finishCounts(x)
	if must(t, err); x.Counters[0] != nil || coded[0] == nil {
		t.Error(x.Counters, coded)
	}
}

// must ends the test if err isn't nil.
var must = world.Must
