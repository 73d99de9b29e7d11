package pipeline_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/safetensors"
	"github.com/df11-convert/df11-convert/internal/spans"
	shared "github.com/df11-convert/df11-convert/internal/testing/world"
	"github.com/df11-convert/df11-convert/pipeline"
)

// widened returns the files of a model with F32 instead of BF16. inexact gives, by tensor, the first
// value that gets a bit which BF16 can't hold, and how many values get it.
func widened(t *testing.T, m *hubtest.Model, inexact map[string][2]int) map[string][]byte {
	t.Helper()
	files := m.Files()
	for p, b := range files {
		if strings.HasSuffix(p, ".safetensors") {
			files[p] = widenOnly(t, b, inexact, func(string) bool { return true })
		}
	}
	return files
}

// widenOnly stores some tensors of a file as F32.
func widenOnly(t *testing.T, b []byte, inexact map[string][2]int, wanted func(tensor string) bool) []byte {
	t.Helper()
	h, err := safetensors.ReadHeader(bytes.NewReader(b), int64(len(b)))
	shared.Must(t, err)
	var es []safetensors.Entry
	for _, x := range h.Tensors {
		e := safetensors.Entry{Name: x.Name, DType: x.DType, Shape: x.Shape}
		if wanted(x.Name) {
			e.DType = "F32"
		}
		es = append(es, e)
	}
	l, err := safetensors.NewHeader(nil, es)
	shared.Must(t, err)
	out := l.Bytes()
	for _, x := range l.Tensors {
		old, _ := h.Lookup(x.Name)
		data := b[h.DataStart()+old.Begin : h.DataStart()+old.End]
		if !wanted(x.Name) {
			out = append(out, data...)
			continue
		}
		for i := range len(data) / 2 {
			low := byte(0)
			if bad := inexact[x.Name]; i >= bad[0] && i < bad[0]+bad[1] {
				low = 1
			}
			out = append(out, low, 0, data[2*i], data[2*i+1])
		}
	}
	return out
}

// f32World is a hub with such a model, and runs that take F32.
func f32World(t *testing.T, inexact map[string][2]int) *world {
	t.Helper()
	return f32WorldOf(t, mediumHead(), inexact)
}

func f32WorldOf(t *testing.T, m *hubtest.Model, inexact map[string][2]int, opts ...hubtest.Option) *world {
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
	for name, change := range map[string]func(*pipeline.Options){"disk": onDisk, "memory": func(*pipeline.Options) {}} {
		t.Run(name, func(t *testing.T) {
			w, work := f32World(t, inexactHead), t.TempDir()
			for i := range 3 {
				_, err := w.convert(t.Context(), t, work, change)
				inexact := (*spans.InexactError)(nil)
				if !errors.As(err, &inexact) || inexact.Values != 3 || inexact.Tensor != head || inexact.Of != 8000*256 {
					t.Fatalf("run %d: %v", i+1, err)
				}
				w.unfinished(t)
			}
		})
	}
}

// TestWrongBitIsNotInexact checks that a file is read again before the run says that BF16 can't
// hold a value, because a bit that changed on its way can cause that.
func TestWrongBitIsNotInexact(t *testing.T) {
	t.Parallel()
	begin := func() *world {
		return f32WorldOf(t, hubtest.NewLlama(13, hubtest.ModelOptions{
			Hidden: 128, Intermediate: 256, Vocab: 1000, Layers: 2, ShardBytes: 500_000, Extra: noPicture,
		}), nil)
	}
	calm, said := newCalm(t, begin()), 0
	for n := 1; n <= calm.reads; n += shared.Stride(5) {
		w := begin()
		w.corrupted(n)
		_, err := w.convert(t.Context(), t, t.TempDir(), func(o *pipeline.Options) {
			o.Log = slog.New(logHook(func(r slog.Record) {
				r.Attrs(func(a slog.Attr) bool {
					if err, ok := a.Value.Any().(error); ok && errors.As(err, new(*spans.InexactError)) {
						said++
					}
					return true
				})
			}))
		})
		if err != nil {
			t.Fatalf("read %d: %v", n, err)
		}
		sameFiles(t, w.target(), calm.target)
	}
	if said == 0 {
		t.Error("no wrong bit made a value that BF16 can't hold")
	}
}
