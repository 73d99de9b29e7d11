package convert_test

import (
	"testing"

	"github.com/df11-convert/df11-convert/internal/forward"

	"github.com/df11-convert/df11-convert/internal/back"
	"github.com/df11-convert/df11-convert/internal/convert"
	"github.com/df11-convert/df11-convert/internal/hubtest"
)

// corrupted makes one bit wrong in the answer to the n-th read of weights.
func (w *world) corrupted(n int) {
	w.Inject(hubtest.Fault{Name: "corrupt", Nth: n})
}

// TestOneWrongBitIsNoWrongModel checks that verify and decode read an answer with a wrong bit again
// before they report anything.
func TestOneWrongBitIsNoWrongModel(t *testing.T) {
	t.Parallel()
	w := newWorld(t, hubtest.NewLlama(5, hubtest.ModelOptions{Hidden: 256, Intermediate: 512, Vocab: 64, Layers: 1, Extra: hubtest.OwnPicture}))
	w.mustConvert(t)
	levels := func(level convert.Level) func(p back.Pair) error {
		return func(p back.Pair) error {
			r, err := convert.Verify(t.Context(), convert.VerifyOptions{Pair: p, Level: level, Means: forward.Means{Workers: 2}, WorkDir: t.TempDir()})
			if err == nil && !r.OK {
				t.Errorf("%+v", r)
			}
			return err
		}
	}
	decode := func(p back.Pair) error {
		p.Source, p.Model = nil, nil
		_, err := convert.Decode(t.Context(), convert.DecodeOptions{Pair: p, OutDir: t.TempDir(), Means: forward.Means{Workers: 2}})
		return err
	}
	for name, read := range map[string]func(back.Pair) error{
		"structure": levels(convert.LevelStructure), "proof": levels(convert.LevelProof), "full": levels(convert.LevelFull), "decode": decode,
	} {
		for n := 1; ; n += 1 + n/4 {
			p := w.pair(t, 1)
			w.corrupted(n)
			err := read(p)
			acted := w.FaultsActed("corrupt")
			w.ClearFaults()
			if err != nil {
				t.Errorf("%s, answer %d: %v", name, n, err)
			}
			if p.DF11.Close(); acted == 0 {
				t.Logf("%s reads fewer than %d answers", name, n)
				break
			}
		}
	}
}
