package fetch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/df11-convert/df11-convert/internal/forward/spool"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/progress"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// counted counts what is streamed from a source, and how many streams are open at once. It changes
// the byte number flip, counted from 1. If cut isn't 0, every file ends there, and has changed.
type counted struct {
	model.Source
	flip, cut        int64
	read, open, most atomic.Int64
}

func (c *counted) Unchanged(file int) error {
	if c.cut > 0 {
		return &model.ChangedError{File: fmt.Sprint(file)}
	}
	return c.Source.Unchanged(file)
}

func (c *counted) Stream(ctx context.Context, file int, from, end int64) (io.ReadCloser, error) {
	r, err := c.Source.Stream(ctx, file, from, end)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(r)
	c.read.Add(int64(len(b)))
	if at := c.flip - 1 - from; at >= 0 && at < int64(len(b)) {
		b[at] ^= 1
	}
	if n := c.cut - from; c.cut > 0 && n < int64(len(b)) {
		b = b[:max(n, 0)]
	}
	c.most.Store(max(c.most.Load(), c.open.Add(1)))
	return stream{bytes.NewReader(b), c}, errors.Join(err, r.Close())
}

type stream struct {
	io.Reader
	of *counted
}

func (s stream) Close() error { s.of.open.Add(-1); return nil }

// job is a fetcher of a small model in several files. Unless local, it counts as one from a Hub.
type job struct {
	*Fetcher
	source *counted
}

func newJob(t *testing.T, local bool) *job {
	t.Helper()
	dir := t.TempDir()
	m := hubtest.NewLlama(3, hubtest.ModelOptions{Layers: 2, Vocab: 512, ShardBytes: 100_000, Order: hubtest.OrderScattered})
	must(t, m.Write(dir))
	src, known, err := model.OpenLocal(t.Context(), dir, plan.Options{}, 0)
	must(t, err)
	t.Cleanup(func() { src.Close() })
	p, err := plan.New(t.Context(), known.Listing, plan.Options{})
	must(t, err)
	known.Local = local
	for i, w := range known.Listing.Weights {
		b, err := os.ReadFile(dir + "/" + w.Path)
		must(t, err)
		known.SHA256[i] = fmt.Sprintf("%x", sha256.Sum256(b))
	}
	if len(known.SHA256) < 2 {
		t.Fatal("one file is too few")
	}
	j := &job{source: &counted{Source: src}}
	j.Fetcher = &Fetcher{
		Source: j.source, Model: known, Tasks: NewTasks(world.Got(spans.Outputs(p))(t)), Ledger: ledger.New("", false),
		Room:     &spool.Room{Dir: world.Root(t, t.TempDir()), Disk: spool.NewBudget(0), Memory: spool.NewBudget(0)},
		Parallel: 8, Progress: new(progress.Counters),
	}
	return j
}

// run fetches, and checks that every complete task holds the bytes of the source and has counters
// for its units.
func (j *job) run(t *testing.T) (complete int, err error) {
	t.Helper()
	tasks := make(chan *Task, len(j.Tasks))
	err = j.Run(t.Context(), tasks)
	close(tasks)
	for task := range tasks {
		complete++
		for x := range task.Tensors() {
			got, want := make([]byte, x.Length), make([]byte, x.Length)
			_, gotErr := task.Spool.ReadAt(got, x.At)
			_, wantErr := j.source.Local(x.File).ReadAt(want, x.Offset)
			if must(t, errors.Join(gotErr, wantErr)); !bytes.Equal(got, want) {
				t.Errorf("%s: %s is not what the source has", task.Path, x.Name)
			}
		}
		for i := range task.Units {
			if (task.Counters[i] != nil) != !j.Uncounted {
				t.Errorf("%s: unit %d is counted: %v", task.Path, i, task.Counters[i] != nil)
			}
		}
	}
	must(t, j.Close())
	return complete, err
}

// size returns the size of all files.
func (j *job) size() (n int64) {
	for _, f := range j.Model.Files() {
		n += f.Size
	}
	return n
}

// No matter how the files are read, every task gets its bytes. Files that are read whole count as
// right. A local source is read once for the hash, and its units once more to be counted. Files of
// a Hub are read one by one, because the budget of spools holds no more.
func TestWays(t *testing.T) {
	for _, c := range []struct {
		name                      string
		local, byRange, uncounted bool
		hashed                    bool
	}{
		{name: "from a Hub", hashed: true},
		{name: "from a Hub, a part", byRange: true},
		{name: "from a Hub, to compare", uncounted: true, hashed: true},
		{name: "local", local: true, hashed: true},
		{name: "local, a part", local: true, byRange: true},
		{name: "local, to compare", local: true, uncounted: true, hashed: true},
	} {
		j := newJob(t, c.local)
		j.ByRange, j.Uncounted = c.byRange, c.uncounted
		complete, err := j.run(t)
		if err != nil || complete != len(j.Tasks) {
			t.Errorf("%s: %d of %d tasks, %v", c.name, complete, len(j.Tasks), err)
		}
		for _, f := range j.Model.Files() {
			if known, ok := j.Ledger.File(f.Path); ok != c.hashed || ok && known.SHA256 != f.SHA256 {
				t.Errorf("%s: %s is known as %+v, %v", c.name, f.Path, known, ok)
			}
		}
		if most := j.source.most.Load(); !c.local && most > 1 {
			t.Errorf("%s: %d files are read at once", c.name, most)
		}
		switch whole := j.source.read.Load() >= j.size(); {
		case whole != c.hashed:
			t.Errorf("%s: %d of %d bytes were read", c.name, j.source.read.Load(), j.size())
		case !c.local && j.source.read.Load() > j.size():
			t.Errorf("%s: %d bytes were read, the files have %d", c.name, j.source.read.Load(), j.size())
		}
	}
}

// Nothing is read for an output that is done, and its files are read by range.
func TestOnlyWhatIsMissingIsRead(t *testing.T) {
	j := newJob(t, false)
	done := j.Tasks[0]
	must(t, j.Ledger.Add(ledger.Output{Path: done.Path, Place: ledger.Place{Here: true}}))
	complete, err := j.run(t)
	if err != nil || complete != len(j.Tasks)-1 {
		t.Errorf("%d of %d tasks, %v", complete, len(j.Tasks)-1, err)
	}
	if done.Spool != nil || j.source.read.Load() > j.size()-done.Size {
		t.Errorf("%d of %d bytes were read, %d are done", j.source.read.Load(), j.size(), done.Size)
	}
	for _, i := range done.Files() {
		if f := j.Model.Files()[i]; j.knows(f.Path) {
			t.Errorf("%s was read by range and counts as hashed", f.Path)
		}
	}
}

func (j *job) knows(path string) bool {
	_, ok := j.Ledger.File(path)
	return ok
}

// One wrong bit in a header or a weight ends the run with an error that names the file, and the
// file doesn't count as right.
func TestWrongBytes(t *testing.T) {
	for at, says := range map[int64]string{20: "header", 50_000: "sha256"} {
		j := newJob(t, false)
		j.source.flip = at
		first := j.Model.Files()[0].Path
		tasks := make(chan *Task, len(j.Tasks))
		if err := j.Run(t.Context(), tasks); !isBroken(err, first, says) {
			t.Errorf("byte %d: %v", at, err)
		}
		if must(t, j.Close()); j.knows(first) {
			t.Errorf("byte %d: %s counts as right", at, first)
		}
	}
}

// A local file that someone cuts short while it's read has changed: that isn't a fault of its own.
func TestCutShort(t *testing.T) {
	j := newJob(t, true)
	j.source.cut = 50_000
	err := j.Run(t.Context(), make(chan *Task, len(j.Tasks)))
	if _, ok := errors.AsType[*model.ChangedError](err); !ok {
		t.Errorf("got %v", err)
	}
	must(t, j.Close())
}

// isBroken reports whether an error is a SourceError about a file that says something.
func isBroken(err error, file, says string) bool {
	e, ok := errors.AsType[*model.SourceError](err)
	return ok && e.File == file && strings.Contains(e.Detail, says)
}

// must ends the test if err isn't nil.
var must = world.Must
