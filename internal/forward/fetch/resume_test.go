package fetch

import (
	"bytes"
	"hash/crc32"
	"testing"

	"github.com/df11-convert/df11-convert/internal/forward/spool"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// Only the tensors that the ledger names are taken from a kept spool, and only if their checksums
// are right. Otherwise nothing in the spool counts.
func TestOnlyConfirmedTensorsAreTakenUp(t *testing.T) {
	a, b := bytes.Repeat([]byte("a"), 600), bytes.Repeat([]byte("b"), 400)
	named := func(at int64, data []byte) ledger.Tensor {
		return ledger.Tensor{Output: "o", At: at, CRC: crc32.Checksum(data, castagnoli)}
	}
	good := []ledger.Tensor{named(0, a), named(600, b)}
	for name, c := range map[string]struct {
		spool []byte
		named []ledger.Tensor
		held  int // tensors; -1: an error
	}{
		"both":             {append(bytes.Clone(a), b...), good, 2},
		"one":              {append(bytes.Clone(a), b...), good[1:], 1},
		"garbage after it": {append(bytes.Clone(a), a[:400]...), good[:1], 1},
		"too short":        {a, good[:1], 1},
		"a bit":            {append(append(bytes.Clone(a[:599]), a[0]^1), b...), good, -1},
		"cut":              {append(bytes.Clone(a), b[:399]...), good, -1},
		"no data":          {nil, good[:1], -1},
		"another place":    {append(bytes.Clone(a), b...), []ledger.Tensor{named(2, a)}, -1},
		"twice":            {append(bytes.Clone(a), b...), []ledger.Tensor{good[0], good[0]}, -1},
	} {
		outputs := world.Got(spans.Outputs(&plan.Plan{OutputFiles: []plan.OutputFile{{
			Path: "o", Plain: []plan.Tensor{{Name: "a", Length: 600}, {Name: "b", Offset: 600, Length: 400}},
		}}}))(t)
		task := NewTasks(outputs)[0]
		s, err := spool.NewTemp(world.Root(t, t.TempDir()))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.WriteAt(c.spool, 0); err != nil {
			t.Fatal(err)
		}
		err = task.Resume(t.Context(), s, c.named)
		if (err != nil) != (c.held < 0) {
			t.Errorf("%s: %v", name, err)
		}
		held := 0
		for x := range outputs[0].Tensors() {
			if task.Holds(x.At) {
				held++
			}
		}
		if held != max(0, c.held) || task.complete() != (held == 2) {
			t.Errorf("%s: %d tensors are held", name, held)
		}
		if err := s.Release(); err != nil {
			t.Fatal(err)
		}
	}
}
