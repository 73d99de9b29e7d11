package pipeline

import (
	"testing"

	"github.com/df11-convert/df11-convert/internal/fetch"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/progress"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/target"
)

// TestNoChangedByteIsVerified: the comparer refuses an output file in which one bit is not as it was written: of the header, of
// the arrays of a module, of a module that stays in BF16, of a copied tensor.
func TestNoChangedByteIsVerified(t *testing.T) {
	dir := t.TempDir()
	must(t, hubtest.NewQwen2(5, hubtest.ModelOptions{Hidden: 16, Heads: 2, Vocab: 32, Layers: 1, Intermediate: 32}).Write(dir))
	src, m, err := model.OpenLocal(t.Context(), dir, plan.Options{})
	must(t, err)
	defer src.Close()
	p, err := plan.New(m.Listing, plan.Options{})
	must(t, err)
	folder, err := target.OpenFolder(t.Context(), t.TempDir(), true, target.NewOwner(p, "", false), "part", p)
	must(t, err)
	outputs, counters := spans.Outputs(p), &progress.Counters{}
	tasks := fetch.NewTasks(outputs)
	complete := make(chan *fetch.Task, len(tasks))
	f := fetch.Fetcher{Source: src, Tasks: tasks, Files: fetch.Files(m, outputs), Ledger: ledger.New("", "", true), Progress: counters}
	must(t, f.Run(t.Context(), complete))
	close(complete)
	a := attempt{
		conversion: &conversion{Options: Options{Source: src, Progress: counters, Budget: Budget{Workers: 1}}, folder: folder},
		outRoom:    newOutRoom(true, 0, nil, nil),
	}
	convert, compare := a.converter(), a.comparer()
	for task := range complete {
		if task.Path == "lm_head.safetensors" {
			task.Reasons[0] = "stays in BF16" // as one that DF11 can't hold
			task.Counters[0] = nil
		}
		made, err := convert.convert(t.Context(), task)
		must(t, err)
		t.Cleanup(made.discard)
		if err := compare.file(t.Context(), made); err != nil {
			t.Fatalf("%s: %v", task.Path, err)
		}
		b := make([]byte, 1)
		for at := int64(0); at < made.size; at += 5 { // all of them take seconds
			_, err := made.file.ReadAt(b, at)
			must(t, err)
			b[0] ^= 1 << (at % 8)
			_, err = made.file.WriteAt(b, at)
			must(t, err)
			if compare.file(t.Context(), made) == nil {
				t.Errorf("%s: byte %d of %d is changed, and nobody sees it", task.Path, at, made.size)
			}
			b[0] ^= 1 << (at % 8)
			_, err = made.file.WriteAt(b, at)
			must(t, err)
		}
	}
}
