package describe_test

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/describe"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// golden is a source and what the official compressor made of it.
const golden = "../../testdata/golden/e2e/qknorm"

// TestDF11 describes a model so small that all weights are read, and counts the source's exponents
// again.
func TestDF11(t *testing.T) {
	d, err := model.OpenDF11Local(t.Context(), filepath.Join(golden, "multi"), 0)
	world.Must(t, err)
	defer d.Close()
	r, err := describe.DF11(t.Context(), d)
	world.Must(t, err)
	src, m, err := model.OpenLocal(t.Context(), filepath.Join(golden, "source"), plan.Options{}, 0)
	world.Must(t, err)
	defer src.Close()
	p, err := plan.New(t.Context(), m.Listing, plan.Options{PatternDict: d.Dict})
	world.Must(t, err)
	var weights, stored int64
	for _, u := range p.Units {
		var want describe.Histogram
		for _, x := range u.Attrs {
			b, err := io.ReadAll(io.NewSectionReader(src.Local(x.File), x.Offset, x.Length))
			world.Must(t, err)
			want.Add(b)
		}
		i := slices.IndexFunc(r.Units, func(x describe.Unit) bool { return x.Path == u.Path })
		if i < 0 || r.Units[i].Histogram != want || r.Units[i].Bits < r.Units[i].Bound {
			t.Fatalf("%s: another module than the source's: %+v", u.Path, r.Units)
		}
		rest := r.Units[i].NBits
		for e, n := range want {
			rest -= int64(n) * int64(r.Units[i].CodeLengths[e])
		}
		if rest < 0 || rest > 64 {
			t.Errorf("%s: %d bits more than the codes of its weights", u.Path, rest)
		}
		weights += u.NElems()
	}
	for _, part := range r.Parts.List() {
		stored += part.Bytes
	}
	if r.Weights != weights || r.Read != weights || r.Parts.SignMantissa != weights || len(r.Units) != len(p.Units) || len(r.Traps) > 0 {
		t.Errorf("%d weights in %d modules: %+v", weights, len(p.Units), r)
	}
	if before := p.UnitBytes() + p.PlainBytes(); stored != r.DF11Bytes || r.BF16Bytes < before || r.BF16Bytes > before+1<<20 {
		t.Errorf("%d bytes before and %d in all parts: %+v", before, stored, r)
	}
}

// TestDamaged names the module that can't be described.
func TestDamaged(t *testing.T) {
	dir := t.TempDir()
	world.Must(t, os.CopyFS(dir, os.DirFS(filepath.Join(golden, "multi"))))
	file := filepath.Join(dir, "lm_head.safetensors")
	world.Write(t, file, []byte(strings.Replace(string(world.Read(t, file)), "lm_head.luts", "lm_head.lutz", 1)))
	d, err := model.OpenDF11Local(t.Context(), dir, 0)
	world.Must(t, err)
	defer d.Close()
	if _, err := describe.DF11(t.Context(), d); err == nil || !strings.Contains(err.Error(), "module lm_head: lm_head.safetensors: it has no luts") {
		t.Errorf("got %v", err)
	}
}
