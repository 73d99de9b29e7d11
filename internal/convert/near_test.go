package convert_test

import (
	"context"
	"testing"

	"github.com/df11-convert/df11-convert/internal/convert"
	"github.com/df11-convert/df11-convert/internal/forward"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	shared "github.com/df11-convert/df11-convert/internal/testing/world"
	"github.com/df11-convert/df11-convert/verify"
)

// TestVerifyOnGPU checks that the report names the second decoder and the number of its units, and
// that a remote unit is fetched only once for both, even if it's larger than the kept part of its
// file.
func TestVerifyOnGPU(t *testing.T) {
	t.Parallel()
	w := newWorld(t, hubtest.NewLlama(5, hubtest.ModelOptions{Hidden: 512, Intermediate: 2048, Vocab: 128, Layers: 1, Extra: hubtest.OwnPicture}))
	w.mustConvert(t)
	check := func(means forward.Means) (*convert.VerifyReport, int64) {
		opt := convert.VerifyOptions{Pair: w.pair(t, 1), Level: convert.LevelFull, WorkDir: t.TempDir(), Means: means}
		w.ResetLog()
		r, err := convert.Verify(t.Context(), opt)
		shared.Must(t, err)
		return r, w.sourceBytes()
	}
	alone, once := check(forward.Means{})
	units := 0
	both, read := check(forward.Means{GPU: gpu(func(ctx context.Context, u *verify.Unit) error {
		units++
		return u.DecodeRange(ctx, 0, u.NElems(), make([]byte, 2*u.NElems()))
	})})
	if len(alone.Verified) != 1 || len(both.Verified) != 2 || both.Verified[1].Decoder != "a function" || both.Verified[1].Device != "a GPU" || both.Verified[1].NUnits != int64(both.Units) || units != both.Units {
		t.Errorf("%d units on the GPU: %+v and %+v", units, alone.Verified, both.Verified)
	}
	if read > once+once/4 {
		t.Errorf("%d bytes are fetched for both decoders, %d for one", read, once)
	}
}
