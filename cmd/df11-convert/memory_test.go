package main

import (
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"
)

func TestLimitMemory(t *testing.T) {
	old := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(old)
	for _, c := range []struct {
		memory        sizeFlag
		workers, want int
		limit         int64 // of the heap
		usage         bool
	}{
		{0, 64, 64, math.MaxInt64, false},
		{1 << 20, 2, 0, math.MaxInt64, true},
		{64<<20 - 1, 2, 0, math.MaxInt64, true},
		{64 << 20, 64, 2, 48 << 20, false},
		{64 << 20, 1, 1, 48 << 20, false},
		{256 << 20, 64, 23, 240 << 20, false},
		{4 << 30, 64, 64, 4080 << 20, false},
	} {
		debug.SetMemoryLimit(math.MaxInt64)
		got, err := (&convertFlags{memory: c.memory}).limitMemory(c.workers)
		if got != c.want || as[usageError](err) != c.usage || debug.SetMemoryLimit(-1) != c.limit {
			t.Errorf("%d bytes, %d workers: got %d, %v, heap %d; want %d, heap %d", c.memory, c.workers, got, err, debug.SetMemoryLimit(-1), c.want, c.limit)
		}
	}
}

func TestTransferBuffers(t *testing.T) {
	for _, c := range []struct {
		memory      int64
		connections int
		rng, buffer int64
	}{
		{0, 0, 0, 0},
		{64 << 20, 0, 2 << 20, 16 << 20},
		{64 << 20, 64, 1 << 20, 16 << 20},
		{64 << 20, 1, 16 << 20, 16 << 20},
		{2 << 30, 8, 16 << 20, 512 << 20},
	} {
		if r, b := transferBuffers(c.memory, c.connections); r != c.rng || b != c.buffer {
			t.Errorf("%d bytes, %d connections: got %d and %d, want %d and %d", c.memory, c.connections, r, b, c.rng, c.buffer)
		}
	}
}

// TestContainerMemory: the first file that holds a limit counts; "max" and the huge number of version 1 are none.
func TestContainerMemory(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return p
	}
	none, limit := file("none", "max\n"), file("limit", "17179869184\n")
	huge, bad := file("huge", "9223372036854771712\n"), file("bad", "x")
	tests := []struct {
		files []string
		want  int64
	}{
		{nil, 0}, {[]string{none}, 0}, {[]string{huge}, 0}, {[]string{bad, filepath.Join(dir, "gone")}, 0},
		{[]string{limit}, 16 << 30}, {[]string{none, limit}, 16 << 30},
	}
	for _, x := range tests {
		if got := containerMemory(x.files); got != x.want {
			t.Errorf("%v: %d, want %d", x.files, got, x.want)
		}
	}
}
