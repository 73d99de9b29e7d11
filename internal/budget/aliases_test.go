package budget_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// TestTiedTensorsAreSampled checks that samples find tied tensors that differ everywhere, or where
// all is compared, and that an estimate says how much of them was compared.
func TestTiedTensorsAreSampled(t *testing.T) {
	for name, tt := range map[string]struct {
		vocab    int
		from, to int // these bytes of the head differ; to is cut to its end
		all      bool
		found    bool
	}{
		"small, equal": {64, 0, 0, false, false}, "small, the last byte": {64, 64*64 - 1, 64 * 64, false, true},
		"large, equal": {30_000, 0, 0, false, false}, "large, all bytes": {30_000, 0, 1 << 30, false, true},
		"large, the last": {30_000, 30_000*64 - 1, 1 << 30, false, true}, "large, between": {30_000, 100_000, 100_001, false, false},
		"large, between, all": {30_000, 100_000, 100_001, true, true},
	} {
		m := hubtest.NewLlama(1, hubtest.ModelOptions{Hidden: 32, Vocab: tt.vocab, Layers: 1, Tied: true, StoreTied: true})
		dir := t.TempDir()
		world.Must(t, m.Write(dir))
		first, _, p := opened(t, dir, plan.Options{})
		if len(p.Aliases) != 1 {
			t.Fatalf("%s: aliases %v", name, p.Aliases)
		}
		head := p.Aliases[0].Tensor
		file := filepath.Join(dir, "model.safetensors")
		b := world.Read(t, file)
		for i := tt.from; i < min(tt.to, int(head.Length)); i++ {
			b[head.Offset+int64(i)] ^= 1
		}
		world.Must(t, first.Close())
		world.Write(t, file, b)
		src, known, p := opened(t, dir, plan.Options{})
		n, err := budget.SampleAliases(t.Context(), src, p, tt.all)
		differ := (*spans.AliasError)(nil)
		if errors.As(err, &differ) != tt.found || differ != nil && differ.Byte != int64(tt.from) {
			t.Errorf("%s: %v", name, err)
		}
		whole := tt.all || tt.vocab < 1000
		if err == nil && (n == head.Length) != whole {
			t.Errorf("%s: %d of %d bytes are compared", name, n, head.Length)
		}
		if e, err := budget.Sample(t.Context(), src, p, budget.DefaultSampleBytes(known)); err == nil && e.AliasBytes != head.Length {
			t.Errorf("%s: the estimate compared %d of %d bytes", name, e.AliasBytes, head.Length)
		}
	}
}
