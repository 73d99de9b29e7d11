package budget

import (
	"testing"

	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// Workers come first, then uploads and transfers. Spools get most of the rest, outside the heap.
func TestForConversion(t *testing.T) {
	for _, c := range []struct {
		budget        int64
		workers, want int
		heap, spools  int64
	}{
		{0, 64, 64, 0, 64 << 20},
		{64 << 20, 64, 2, 48 << 20, 0},
		{64 << 20, 1, 1, 48 << 20, 0},
		{256 << 20, 64, 23, 240 << 20, 0},
		{256 << 20, 2, 2, 240<<20 - 73.5*(1<<20), 73.5 * (1 << 20)},
		{4 << 30, 2, 2, 4080<<20 - 2833.5*(1<<20), 2833.5 * (1 << 20)},
	} {
		if got := ForConversion(c.budget, c.workers); got.Workers != c.want || got.Heap != c.heap || got.Spools != c.spools {
			t.Errorf("%d bytes, %d workers: %+v; want %d workers, heap %d, spools %d", c.budget, c.workers, got, c.want, c.heap, c.spools)
		}
	}
	for budget, want := range map[int64]int64{0: 0, 64 << 20: 8 << 20, 8 << 30: 96 << 20} {
		if got := ForConversion(budget, 2).Pieces; got != want {
			t.Errorf("%d of %d bytes for pieces, want %d", got, budget, want)
		}
	}
}

// For commands that only read, the heap gets what a conversion would keep for spools, and each
// client gets less than half.
func TestForReading(t *testing.T) {
	m := ForReading(256<<20, 64)
	if m.Workers != 23 || m.Heap != 240<<20 || m.Spools != 0 || m.AheadBytes != 28<<20 {
		t.Errorf("%+v", m)
	}
	if m := ForReading(2<<30, 2); m.Heap != 2<<30-outsideHeap {
		t.Errorf("%+v", m)
	}
}

// A GPU takes at most half of the spools' share of the host's memory, and others get that much
// less.
func TestMemoryBesideGPU(t *testing.T) {
	for _, budget := range []int64{64 << 20, 256 << 20, 2 << 30, 64 << 30} {
		convert := ForConversion(budget, 2)
		if m := convert.BesideGPU(convert.GPU); convert.GPU < 1 || convert.Spools > 0 && (m.Spools < minSpools/2 || convert.Spools-m.Spools != convert.GPU || m.Heap != convert.Heap) {
			t.Errorf("%d bytes, convert: %+v", budget, m)
		}
		read := ForReading(budget, 2)
		if m := read.BesideGPU(read.GPU); read.Heap-m.Heap != read.GPU || m.Heap <= outsideHeap {
			t.Errorf("%d bytes, verify: %+v", budget, m)
		}
	}
	if none := ForConversion(0, 2); none.GPU != 0 || none.BesideGPU(1<<30) != none {
		t.Errorf("no budget: %+v", none)
	}
}

// Ranges shrink with the budget, and there are as many as the client fetches ahead.
func TestTransfers(t *testing.T) {
	for _, c := range []struct {
		budget, rng, ahead int64
	}{
		{0, 8 << 20, 192 << 20}, // the client's own sizes
		{64 << 20, 1 << 20, 16 << 20},
		{384 << 20, 4 << 20, 96 << 20},
		{2 << 30, 8 << 20, 192 << 20},
	} {
		if m := ForConversion(c.budget, 2); m.RangeBytes != c.rng || m.AheadBytes != c.ahead {
			t.Errorf("%d bytes: got %d and %d, want %d and %d", c.budget, m.RangeBytes, m.AheadBytes, c.rng, c.ahead)
		}
	}
}

// A plan promises no less than the run divides, and no more than the budget.
func TestBoundHoldsWhatIsShared(t *testing.T) {
	m := func(local bool, sizes ...int64) *model.Model {
		of := &model.Model{Local: local}
		for _, size := range sizes {
			of.Listing.Weights = append(of.Listing.Weights, plan.WeightFile{File: plan.File{Size: size}, Header: &safetensors.Header{}})
		}
		return of
	}
	free := ForConversion(0, 2)
	none := free.Bound(m(true, 5<<30), &plan.Plan{}, 0, 0)
	if none != free.buffers() {
		t.Errorf("a local source: %d", none)
	}
	for _, budget := range []int64{64 << 20, 256 << 20, 4 << 30} {
		shared := ForConversion(budget, 64)
		if got := shared.Bound(m(false, 5<<30), &plan.Plan{}, shared.Spools, 0); got > budget || got < budget/2 {
			t.Errorf("%d is bounded by %d", budget, got)
		}
	}
}
