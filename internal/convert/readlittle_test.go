package convert_test

import (
	"testing"

	"github.com/df11-convert/df11-convert/internal/back"
	"github.com/df11-convert/df11-convert/internal/convert"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	shared "github.com/df11-convert/df11-convert/internal/testing/world"
)

// TestChecksReadLittle checks that a plan reads only headers from a remote model's weight files,
// and that the structure check of a DF11 model reads a few small pieces of each file.
func TestChecksReadLittle(t *testing.T) {
	t.Parallel()
	m := hubtest.NewLlama(5, hubtest.ModelOptions{Hidden: 512, Vocab: 512, Layers: 4, ShardBytes: 12 << 20, Extra: hubtest.OwnPicture})
	w := newWorld(t, m)
	w.mustConvert(t)
	w.ResetLog()
	src, known, p, err := openModel(t.Context(), w.client(t), sourceRepo, plan.Options{})
	shared.Must(t, err)
	nFiles, all := int64(len(known.Listing.Weights)), m.Size()
	if read := w.sourceBytes(); nFiles < 3 || read > nFiles*128<<10 {
		t.Errorf("planning reads %d bytes of %d files with %d bytes", read, nFiles, all)
	}
	w.ResetLog()
	d, err := model.OpenDF11Hub(t.Context(), w.client(t), targetRepo, "", 0, 0)
	shared.Must(t, err)
	defer d.Close()
	units, size := int64(len(p.Units)), int64(0)
	for _, f := range weightFiles(w.target()) {
		size += w.target()[f].Size
	}
	if read := w.sourceBytes(); read > (units+1)*64<<10 {
		t.Errorf("opening reads %d bytes of %d", read, size)
	}
	r, err := convert.Verify(t.Context(), convert.VerifyOptions{Pair: back.Pair{DF11: d, Source: src, Model: known, Plan: p}, Level: convert.LevelStructure})
	if err != nil || !r.OK {
		t.Fatal(err)
	}
	if read := w.sourceBytes(); read > (units+1)*7*64<<10 || read > size/3 {
		t.Errorf("checking the structure reads %d bytes of %d in %d units", read, size, units)
	}
	t.Logf("%d bytes of %d", w.sourceBytes(), size)
}
