package pipeline_test

import (
	"testing"

	"github.com/df11-convert/df11-convert/internal/back"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	shared "github.com/df11-convert/df11-convert/internal/testing/world"
	"github.com/df11-convert/df11-convert/pipeline"
)

// corrupted makes one bit wrong in the answer to the n-th read of weights.
func (w *world) corrupted(n int) {
	w.Inject(hubtest.Fault{Name: "corrupt", Nth: n})
}

// TestOneWrongBitIsNoWrongModel: whichever answer to verify or decode has a wrong bit, it is read
// again before anything is reported.
func TestOneWrongBitIsNoWrongModel(t *testing.T) {
	t.Parallel()
	w := newWorld(t, hubtest.NewLlama(5, hubtest.ModelOptions{Hidden: 256, Intermediate: 512, Vocab: 64, Layers: 1, Extra: noPicture}))
	w.mustConvert(t)
	levels := func(level pipeline.Level) func(p back.Pair) error {
		return func(p back.Pair) error {
			r, err := pipeline.Verify(t.Context(), pipeline.PairOptions{Pair: p, Level: level, Workers: 2, WorkDir: t.TempDir()})
			if err == nil && !r.OK {
				t.Errorf("%+v", r)
			}
			return err
		}
	}
	decode := func(p back.Pair) error {
		p.Source, p.Model = nil, nil
		_, err := pipeline.Decode(t.Context(), pipeline.PairOptions{Pair: p, OutDir: t.TempDir(), Workers: 2})
		return err
	}
	for name, read := range map[string]func(back.Pair) error{
		"structure": levels(pipeline.LevelStructure), "proof": levels(pipeline.LevelProof), "full": levels(pipeline.LevelFull), "decode": decode,
	} {
		for n := 1; ; n += 1 + n/4 {
			c := w.client(t)
			src, known, p, err := openModel(t.Context(), c, sourceRepo, plan.Options{})
			shared.Must(t, err)
			d, err := model.OpenDF11Hub(t.Context(), c, targetRepo, "", 0, 1)
			shared.Must(t, err)
			w.corrupted(n)
			err = read(back.Pair{DF11: d, Source: src, Model: known, Plan: p})
			acted := w.FaultsActed("corrupt")
			w.ClearFaults()
			if err != nil {
				t.Errorf("%s, answer %d: %v", name, n, err)
			}
			if d.Close(); acted == 0 {
				t.Logf("%s reads fewer than %d answers", name, n)
				break
			}
		}
	}
}
