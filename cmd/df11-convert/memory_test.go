package main

import (
	"math"
	"runtime/debug"
	"testing"
)

// TestDivideMemory: workers first, then uploads and transfers; spools get most of the rest, outside the heap.
func TestDivideMemory(t *testing.T) {
	for _, c := range []struct {
		memory        sizeFlag
		workers, want int
		heap, spools  int64
		usage         bool
	}{
		{0, 64, 64, 0, 0, false},
		{1 << 20, 2, 2, 0, 0, true},
		{64<<20 - 1, 2, 2, 0, 0, true},
		{64 << 20, 64, 2, 48 << 20, -1, false},
		{64 << 20, 1, 1, 48 << 20, -1, false},
		{256 << 20, 64, 23, 240 << 20, -1, false},
		{256 << 20, 2, 2, 240<<20 - 73.5*(1<<20), 73.5 * (1 << 20), false},
		{4 << 30, 2, 2, 4080<<20 - 2773.5*(1<<20), 2773.5 * (1 << 20), false},
	} {
		got, err := divideMemory(c.memory, c.workers, 2)
		if got.workers != c.want || as[usageError](err) != c.usage || got.heap != c.heap || got.spools != c.spools {
			t.Errorf("%d bytes, %d workers: %+v, %v; want %d workers, heap %d, spools %d", c.memory, c.workers, got, err, c.want, c.heap, c.spools)
		}
	}
}

// TestMemoryBesideGPU: what GPUs take of the host's memory, half of the spools' share at most, others do without.
func TestMemoryBesideGPU(t *testing.T) {
	for _, total := range []sizeFlag{64 << 20, 256 << 20, 2 << 30, 64 << 30} {
		convert, err := divideMemory(total, 2, 2)
		if err != nil || convert.gpu < 1 {
			t.Fatal(convert, err)
		}
		if m := convert.besideGPU(convert.gpu); convert.spools > 0 && (m.spools < minSpools/2 || convert.spools-m.spools != convert.gpu || m.heap != convert.heap) {
			t.Errorf("%d bytes, convert: %+v", total, m)
		}
		read, err := forReading(total, 2)
		if err != nil {
			t.Fatal(err)
		}
		if m := read.besideGPU(read.gpu); read.heap-m.heap != read.gpu || m.heap <= outsideHeap {
			t.Errorf("%d bytes, verify: %+v", total, m)
		}
	}
	none, err := divideMemory(0, 2, 2)
	if err != nil || none.gpu != 0 || none.besideGPU(1<<30) != none {
		t.Errorf("no budget: %+v", none)
	}
}

// TestMemoryLimit: a budget is told to the collector, no budget leaves it alone.
func TestMemoryLimit(t *testing.T) {
	old := debug.SetMemoryLimit(math.MaxInt64)
	defer debug.SetMemoryLimit(old)
	memoryShares{}.apply()
	if l := debug.SetMemoryLimit(-1); l != math.MaxInt64 {
		t.Error(l)
	}
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	memoryShares{total: 64 << 20, heap: 48 << 20}.apply()
	if l := debug.SetMemoryLimit(-1); l != 48<<20 {
		t.Error(l)
	}
}

func TestTransferBuffers(t *testing.T) {
	for _, c := range []struct {
		memory      int64
		connections int
		rng, buffer int64
	}{
		{0, 0, 8 << 20, 256 << 20}, // as the client has them by itself
		{0, 64, 8 << 20, 1 << 30},
		{64 << 20, 0, 1 << 20, 16 << 20},
		{256 << 20, 0, 2 << 20, 64 << 20},
		{64 << 20, 64, 1 << 20, 16 << 20},
		{64 << 20, 1, 8 << 20, 16 << 20},
		{2 << 30, 8, 8 << 20, 256 << 20},
	} {
		if r, b := transferBuffers(c.memory, c.connections); r != c.rng || b != c.buffer {
			t.Errorf("%d bytes, %d connections: got %d and %d, want %d and %d", c.memory, c.connections, r, b, c.rng, c.buffer)
		}
	}
}

// TestBothSidesKeepTheBudget: the client of the target, from which outputs come back for a proof, has the bounds of the
// source's, and so have the pieces in which they are read.
func TestBothSidesKeepTheBudget(t *testing.T) {
	f := hubFlags{budget: 64 << 20, connections: 4}
	for _, side := range []string{"source", "target"} {
		opt, err := f.hubOptions(&ui{}, side)
		if err != nil || opt.BufferBytes != 16<<20 || opt.RangeBytes != 2<<20 || opt.Connections != 4 {
			t.Errorf("%s: %d bytes in ranges of %d, %v", side, opt.BufferBytes, opt.RangeBytes, err)
		}
	}
	for memory, want := range map[int64]int64{0: 0, 64 << 20: 8 << 20, 8 << 30: 96 << 20} {
		if got := pieceMemory(memory); got != want {
			t.Errorf("%d of %d bytes for pieces, want %d", got, memory, want)
		}
	}
}

// TestPlanKnowsWhatTheClientFetches: a plan counts with the ranges that the client of the conversion has, with and without budgets.
func TestPlanKnowsWhatTheClientFetches(t *testing.T) {
	for _, memory := range []sizeFlag{64 << 20, 256 << 20, 64 << 30} {
		for _, connections := range []int{0, 1, 64} {
			f := planFlags{limitFlags: limitFlags{memory: memory}}
			f.connections, f.budget = connections, int64(memory)
			b, err := f.conversion()
			if err != nil {
				t.Fatal(err)
			}
			if opt, err := f.hubOptions(&ui{}, "source"); err != nil || b.RangeBytes != opt.RangeBytes || b.Buffers != opt.BufferBytes {
				t.Errorf("%d of memory, %d connections: %d in ranges of %d planned, %d in ranges of %d made, %v", memory, connections,
					b.Buffers, b.RangeBytes, opt.BufferBytes, opt.RangeBytes, err)
			}
		}
	}
}

// TestForReading: commands that only read give the collector all that a conversion would keep for spools, and their clients
// less than half each.
func TestForReading(t *testing.T) {
	oldLimit, oldPercent := debug.SetMemoryLimit(-1), debug.SetGCPercent(100)
	defer func() { debug.SetMemoryLimit(oldLimit); debug.SetGCPercent(oldPercent) }()
	f := readerFlags{workers: 64, memory: 256 << 20}
	if err := f.divide(); err != nil || f.shares.workers != 23 || f.budget != 112<<20 || debug.SetMemoryLimit(-1) != 240<<20 {
		t.Errorf("%+v, %d, %v", f, debug.SetMemoryLimit(-1), err)
	}
	f = readerFlags{memory: 1 << 20}
	if err := f.divide(); !as[usageError](err) {
		t.Error(err)
	}
}
