package main

import (
	"math"
	"runtime/debug"
	"testing"

	"github.com/df11-convert/df11-convert/internal/budget"
)

// TestMemoryLimit: a budget is told to the collector, no budget leaves it alone, and one that is too small is refused.
func TestMemoryLimit(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(math.MaxInt64))
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	applyMemory(budget.Memory{})
	if l := debug.SetMemoryLimit(-1); l != math.MaxInt64 {
		t.Error(l)
	}
	f := readerFlags{workers: 64, memory: 256 << 20}
	if err := f.divide(); err != nil || debug.SetMemoryLimit(-1) != 240<<20 {
		t.Error(debug.SetMemoryLimit(-1), err)
	}
	for _, memory := range []sizeFlag{1, 1 << 20, budget.LeastMemory - 1} {
		f := readerFlags{memory: memory}
		_, err := (&limitFlags{memory: memory}).divide()
		if !as[usageError](f.divide()) || !as[usageError](err) {
			t.Errorf("%d bytes are accepted", memory)
		}
	}
}

// TestBothSidesKeepTheBudget: the client of the target, from which outputs come back for a proof, has the bounds of the source's.
func TestBothSidesKeepTheBudget(t *testing.T) {
	f := hubFlags{shares: budget.ForConversion(96<<20, 2)}
	for _, side := range []string{"source", "target"} {
		opt, err := f.hubOptions(&ui{}, side)
		if err != nil || opt.BufferBytes != 24<<20 || opt.RangeBytes != 1<<20 {
			t.Errorf("%s: %d bytes in ranges of %d, %v", side, opt.BufferBytes, opt.RangeBytes, err)
		}
	}
}
