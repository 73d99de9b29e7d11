package pipeline_test

import (
	"context"
	"testing"

	"github.com/df11-convert/df11-convert/internal/forward"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	shared "github.com/df11-convert/df11-convert/internal/testing/world"
	"github.com/df11-convert/df11-convert/pipeline"
	"github.com/df11-convert/df11-convert/verify"
)

// TestVerifyOnGPU: the report says what decoded a second time, and how many units; a remote unit
// that is larger than what is kept of its file is fetched once for both.
func TestVerifyOnGPU(t *testing.T) {
	t.Parallel()
	w := newWorld(t, hubtest.NewLlama(5, hubtest.ModelOptions{Hidden: 512, Intermediate: 2048, Vocab: 128, Layers: 1, Extra: noPicture}))
	w.mustConvert(t)
	check := func(second forward.GPU) (*pipeline.VerifyReport, int64) {
		opt := pipeline.PairOptions{Pair: w.pair(t, 1), Level: pipeline.LevelFull, Workers: 1, WorkDir: t.TempDir(), GPU: second}
		w.ResetLog()
		r, err := pipeline.Verify(t.Context(), opt)
		shared.Must(t, err)
		return r, w.sourceBytes()
	}
	alone, once := check(nil)
	units := 0
	both, read := check(gpu(func(ctx context.Context, u *verify.Unit) error {
		units++
		return u.DecodeRange(ctx, 0, u.NElems(), make([]byte, 2*u.NElems()))
	}))
	if alone.GPU != nil || both.GPU == nil || both.GPU.Kernel != "a function" || both.GPU.Device != "a GPU" || both.GPU.Units != both.Units || units != both.Units {
		t.Errorf("%d units on the GPU: %+v and %+v", units, alone.GPU, both.GPU)
	}
	if read > once+once/4 {
		t.Errorf("%d bytes are fetched for both decoders, %d for one", read, once)
	}
}
