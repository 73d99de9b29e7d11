package convert_test

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/df11-convert/df11-convert/internal/convert"
	"github.com/df11-convert/df11-convert/internal/describe"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/safetensors"
	"github.com/df11-convert/df11-convert/internal/testing/alloc"
	shared "github.com/df11-convert/df11-convert/internal/testing/world"
	"github.com/df11-convert/df11-convert/verify"
)

// TestInspectHub describes a DF11 repo from samples, and compares sizes and entropy with those of
// its folder.
func TestInspectHub(t *testing.T) {
	w, dir := newWorld(t, hubtest.NewLlama(3, hubtest.ModelOptions{Hidden: 256, Vocab: 2048})), t.TempDir()
	w.mustConvert(t, func(o *convert.Options) { o.OutDir = dir })
	remote, err := model.OpenDF11Hub(t.Context(), w.client(t), targetRepo, "", 0, 0)
	shared.Must(t, err)
	defer remote.Close()
	local, err := model.OpenDF11Local(t.Context(), dir, 0)
	shared.Must(t, err)
	defer local.Close()
	b, err := describe.DF11(t.Context(), local)
	shared.Must(t, err)
	a, err := describe.DF11(t.Context(), remote)
	shared.Must(t, err)
	if a.BF16Bytes != b.BF16Bytes || a.Bits != b.Bits || len(a.Units) != 4 {
		t.Errorf("the repo's figures differ from the folder's:\n%+v\n%+v", a.Units[0], b.Units[0])
	}
	if a.Read == 0 || a.Read >= a.Weights || b.Read != b.Weights {
		t.Errorf("%d of %d weights read from the hub, %d from the folder", a.Read, a.Weights, b.Read)
	}
	if math.Abs(a.Entropy-b.Entropy) > 0.05 {
		t.Errorf("entropy %.3f from samples, %.3f in all", a.Entropy, b.Entropy)
	}
}

// TestInspectRefusesBombs checks that a file of holes that claims a unit with very many tensors is
// refused, and takes little memory.
func TestInspectRefusesBombs(t *testing.T) {
	dir := localResult(t, small())
	name := filepath.Join(dir, "lm_head.safetensors")
	var entries []safetensors.Entry
	for _, x := range tensors(t, shared.Read(t, name)) {
		if x.DType == "I64" {
			x.Shape = []int64{16 << 20}
		}
		entries = append(entries, safetensors.Entry{Name: x.Name, DType: safetensors.DType(x.DType), Shape: x.Shape})
	}
	l, err := safetensors.NewHeader(nil, entries)
	shared.Must(t, err)
	shared.Write(t, name, l.Bytes())
	shared.Must(t, os.Truncate(name, l.Size()))
	d, err := model.OpenDF11Local(t.Context(), dir, 0)
	shared.Must(t, err)
	defer d.Close()
	alloc.Within(t, 64<<20, func() { _, err = describe.DF11(t.Context(), d) })
	if bad := (*verify.StructureError)(nil); !errors.As(err, &bad) {
		t.Errorf("got %v", err)
	}
}
