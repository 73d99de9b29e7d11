package alloc

import (
	"io"
	"runtime/debug"
	"testing"
)

// failing is a test that notes whether it failed.
type failing struct {
	testing.TB
	failed bool
}

func (f *failing) Helper()               {}
func (f *failing) Errorf(string, ...any) { f.failed = true }

var kept []byte

// TestLimits: the limits notice what's allocated beyond them, freed or not.
func TestLimits(t *testing.T) {
	twoMiB := func() {
		for range 2 {
			kept = make([]byte, 1<<20)
		}
	}
	if n := Bytes(twoMiB); n < 2<<20 || n > 3<<20 {
		t.Errorf("2 MiB are counted as %d bytes", n)
	}
	first := true
	once := func() {
		if first {
			first = false
			twoMiB()
		}
	}
	for name, tc := range map[string]struct {
		check func(testing.TB)
		fails bool
	}{
		"within":           {func(tb testing.TB) { Within(tb, 3<<20, twoMiB) }, false},
		"beyond":           {func(tb testing.TB) { Within(tb, 2<<20-1, twoMiB) }, true},
		"per byte":         {func(tb testing.TB) { PerByte(tb, 2, 1<<20, twoMiB) }, false},
		"more per byte":    {func(tb testing.TB) { PerByte(tb, 1, 1000, twoMiB) }, true},
		"each time":        {func(tb testing.TB) { Repeated(tb, 1<<10, func() { kept = make([]byte, 4<<10) }) }, true},
		"only the first":   {func(tb testing.TB) { Repeated(tb, 1<<20, once) }, false},
		"nothing, limit 0": {func(tb testing.TB) { Repeated(tb, 0, func() {}) }, false},
	} {
		f := &failing{TB: t}
		if tc.check(f); f.failed != tc.fails {
			t.Errorf("%s: failed %v", name, f.failed)
		}
	}
}

// TestMemory: memory has ends, as files have.
func TestMemory(t *testing.T) {
	m := Memory("0123")
	if n, err := m.ReadAt(make([]byte, 3), 2); n != 2 || err != io.EOF { //nolint:errorlint // of io.ReaderAt
		t.Errorf("%d, %v", n, err)
	}
	for _, off := range []int64{-1, 3, 5} {
		if n, err := m.WriteAt([]byte("xx"), off); n != 0 || err == nil || string(m) != "0123" {
			t.Errorf("at %d: %d, %v, %s", off, n, err, m)
		}
	}
	if n, err := m.WriteAt([]byte("xx"), 2); n != 2 || err != nil || string(m) != "01xx" {
		t.Errorf("%d, %v, %s", n, err, m)
	}
}

// crashes reports whether f touches memory that it may not.
func crashes(f func()) (crashed bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { crashed = recover() != nil }()
	f()
	return false
}
