package convert_test

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

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/convert"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/spans"
	shared "github.com/df11-convert/df11-convert/internal/testing/world"
)

// several is a model of 3.7 MB without a tensor above 512 KiB: what lies whole in
// a spool differs from what was in progress.
func several() *hubtest.Model {
	return hubtest.NewLlama(13, hubtest.ModelOptions{
		Hidden: 128, Intermediate: 1024, Vocab: 2000, Layers: 3, ShardBytes: 2_000_000, Order: hubtest.OrderModel, Extra: hubtest.OwnPicture,
	})
}

// mediumHead is a model of 11 MB with two tensors of 4 MB each.
func mediumHead() *hubtest.Model {
	return hubtest.NewLlama(13, hubtest.ModelOptions{Hidden: 256, Heads: 4, Vocab: 8000, Layers: 2, Extra: hubtest.OwnPicture})
}

// onDisk makes every spool a file.
func onDisk(o *convert.Options) { o.Memory.Spools = 0 }

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
	for _, o := range shared.Got(spans.Outputs(p))(t) {
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

// killedIn runs a conversion in a folder, and returns a copy of the folder as a kill would leave it
// once the k-th range of a file is asked for. The run may end before.
func (w *world) killedIn(t *testing.T, live string, k int, change ...func(*convert.Options)) (work string, err error) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	dead := t.TempDir()
	var once sync.Once
	w.Inject(hubtest.Fault{Host: hubtest.HostCDN, Method: "GET", Path: "/repos/*", Nth: k, Times: hubtest.Always, Action: func(x *hubtest.Exchange) {
		once.Do(func() { // later reads wait too, this one among them if it is asked again
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
		time.Sleep(20 * time.Millisecond) // so that a run that goes on writes something
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
