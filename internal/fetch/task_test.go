package fetch

import (
	"context"
	"slices"
	"testing"

	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// TestPrefixes: an output is bound to the furthest prefix of each source file that it was made from, and to none of a file of
// which some tensors came under no hash, whatever came before or after them.
func TestPrefixes(t *testing.T) {
	f := func(end int64, sum string) ledger.Prefix { return ledger.Prefix{File: "f", End: end, SHA256: sum} }
	g := ledger.Prefix{File: "g", End: 5, SHA256: "g5"}
	for name, c := range map[string]struct{ arrive, want []ledger.Prefix }{
		"nothing":        {nil, nil},
		"the last":       {[]ledger.Prefix{f(1, "f1"), g, f(2, "f2")}, []ledger.Prefix{f(2, "f2"), g}},
		"in disorder":    {[]ledger.Prefix{f(2, "f2"), f(1, "f1")}, []ledger.Prefix{f(2, "f2")}},
		"no hash first":  {[]ledger.Prefix{f(1, ""), f(2, "f2"), g}, []ledger.Prefix{g}},
		"no hash last":   {[]ledger.Prefix{f(1, "f1"), g, f(2, "")}, []ledger.Prefix{g}},
		"no hash amid":   {[]ledger.Prefix{f(1, "f1"), f(2, ""), f(3, "f3")}, nil},
		"no hash before": {[]ledger.Prefix{f(2, "f2"), f(1, "")}, nil},
		"no hash at all": {[]ledger.Prefix{f(1, ""), f(2, "")}, nil},
	} {
		task := NewTasks([]*spans.Output{{Path: "o"}})[0]
		for _, p := range c.arrive {
			task.bind(p)
		}
		if got := prefixes(t, task); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func prefixes(t *testing.T, task *Task) []ledger.Prefix {
	t.Helper()
	p, err := task.Prefixes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestPrefixesWaitForTheHash: an output has no prefixes before its last byte has passed the hash, and a run that ends does not
// wait for that.
func TestPrefixesWaitForTheHash(t *testing.T) {
	task := &Task{hashed: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := task.Prefixes(ctx); err == nil {
		t.Error("an output whose bytes have not been hashed is bound")
	}
	task.bind(ledger.Prefix{File: "a", End: 9, SHA256: "x"})
	close(task.hashed)
	if p := prefixes(t, task); len(p) != 1 {
		t.Errorf("%d prefixes", len(p))
	}
}
