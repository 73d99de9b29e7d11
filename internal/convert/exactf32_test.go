package convert_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/df11-convert/df11-convert/internal/convert"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/spans"
	shared "github.com/df11-convert/df11-convert/internal/testing/world"
)

// widened returns the files of a model with F32 instead of BF16. inexact gives, by tensor, the
// first value that gets a bit which BF16 can't hold, and how many values get it.
func widened(t *testing.T, m *hubtest.Model, inexact map[string][2]int) map[string][]byte {
	t.Helper()
	files := m.Files()
	for p, b := range files {
		if !strings.HasSuffix(p, ".safetensors") {
			continue
		}
		list := tensors(t, b)
		for i, x := range list {
			bad, wide := inexact[x.Name], make([]byte, 0, 2*len(x.Data))
			for at := range len(x.Data) / 2 {
				low := byte(0)
				if at >= bad[0] && at < bad[0]+bad[1] {
					low = 1
				}
				wide = append(wide, low, 0, x.Data[2*at], x.Data[2*at+1])
			}
			list[i].DType, list[i].Data = "F32", wide
		}
		files[p] = shared.Safetensors(list)
	}
	return files
}

// f32World is a hub with such a model, and runs that take F32.
func f32World(t *testing.T, m *hubtest.Model, inexact map[string][2]int, opts ...hubtest.Option) *world {
	t.Helper()
	w := newWorld(t, nil, opts...)
	w.AddRepo(sourceRepo, widened(t, m, inexact))
	w.plan = plan.Options{ExactF32: true}
	return w
}

// head is a tensor of 4 MB whose middle doesn't fit.
const head = "lm_head.weight"

var inexactHead = map[string][2]int{head: {1_000_000, 3}}

// TestInexactIsRefusedAgain checks that values that don't fit BF16 are refused with the same count
// at every try, whatever the last run kept.
func TestInexactIsRefusedAgain(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*convert.Options){"disk": onDisk, "memory": func(*convert.Options) {}} {
		t.Run(name, func(t *testing.T) {
			w, work := f32World(t, mediumHead(), inexactHead), t.TempDir()
			all := int64(0)
			for _, f := range w.Files(sourceRepo, "main") {
				all += f.Size
			}
			for i := range 3 {
				w.ResetLog()
				_, err := w.convert(t.Context(), t, work, change)
				inexact := (*spans.InexactError)(nil)
				if !errors.As(err, &inexact) || inexact.Values != 3 || inexact.Tensor != head || inexact.Of != 8000*256 {
					t.Fatalf("run %d: %v", i+1, err)
				}
				w.unfinished(t)
				// these values are read once more, and nothing else
				if most := all + 8000*256*4 + 2*rangeBytes; w.sourceBytes() > most {
					t.Errorf("run %d read %d bytes of %d", i+1, w.sourceBytes(), all)
				}
			}
		})
	}
}

// TestWrongBitIsNotInexact checks that a file is read again before the run says that BF16 can't
// hold a value, because a bit that changed on its way can cause that.
func TestWrongBitIsNotInexact(t *testing.T) {
	t.Parallel()
	survivesWrongBits(t, func() *world {
		return f32World(t, hubtest.NewLlama(13, hubtest.ModelOptions{
			Hidden: 128, Intermediate: 256, Vocab: 1000, Layers: 2, ShardBytes: 500_000, Extra: hubtest.OwnPicture,
		}), nil)
	})
}

// TestWrongBitIsNoOtherTwin checks the same of two tensors that must be equal. They come first in
// their file, and the rest of it comes late, so they're compared before the file's hash is known.
func TestWrongBitIsNoOtherTwin(t *testing.T) {
	t.Parallel()
	files := hubtest.NewLlama(13, hubtest.ModelOptions{
		Hidden: 64, Intermediate: 96, Vocab: 1000, Layers: 6, Tied: true, StoreTied: true, Extra: hubtest.OwnPicture,
	}).Files()
	list := tensors(t, files["model.safetensors"])
	slices.SortStableFunc(list, func(a, b shared.Tensor) int {
		return strings.Count(a.Name, ".layers.") - strings.Count(b.Name, ".layers.")
	})
	files["model.safetensors"] = shared.Safetensors(list)
	var late atomic.Bool // a read of the rest was late in this run
	survivesWrongBits(t, func() *world {
		late.Store(false)
		w := newWorld(t, nil)
		w.AddRepo(sourceRepo, files)
		return w
	}, hubtest.Fault{Name: "late", Method: "GET", Path: "/repos/*", Times: hubtest.Always, Action: func(x *hubtest.Exchange) {
		var from int
		_, err := fmt.Sscanf(x.Request.Header.Get("Range"), "bytes=%d-", &from)
		if err == nil && from > 300_000 && late.CompareAndSwap(false, true) {
			select { // long enough for what came before, unless the run ends
			case <-x.Request.Context().Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
		x.Next(x.ResponseWriter)
	}})
}

// survivesWrongBits converts the model of a world with one wrong bit on its way, in one read after
// another, and compares the results with that of an undisturbed run.
func survivesWrongBits(t *testing.T, begin func() *world, faults ...hubtest.Fault) {
	t.Helper()
	calm := newCalm(t, begin())
	for n := 1; n <= calm.reads; n += shared.Stride(5) {
		w := begin()
		w.corrupted(n)
		w.Inject(faults...)
		if _, err := w.convert(t.Context(), t, t.TempDir()); err != nil {
			t.Fatalf("read %d: %v", n, err)
		}
		if w.FaultsActed("corrupt") != 1 {
			t.Fatalf("read %d wasn't wrong", n)
		}
		sameFiles(t, w.target(), calm.target)
	}
}
