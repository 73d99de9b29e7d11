package spans

import (
	"cmp"
	"fmt"
	"slices"
)

// Part is one machine's share of a conversion: I of N, counted from 1. The zero Part is the whole.
type Part struct{ I, N int }

// MaxParts is the largest number of parts, because a plan has no more units.
const MaxParts = 16_384

// Check refuses a part outside 1 to N, and more than MaxParts.
func (p Part) Check() error {
	if !p.Whole() && (p.N < 1 || p.I < 1 || p.I > p.N || p.N > MaxParts) {
		return fmt.Errorf("part %d of %d: parts are counted from 1, and there are at most %d", p.I,
			p.N, MaxParts)
	}
	return nil
}

// Whole reports whether one machine makes everything.
func (p Part) Whole() bool { return p == (Part{}) }

// String names the part's journal.
func (p Part) String() string {
	if p.Whole() {
		return "part-1-of-1"
	}
	return fmt.Sprintf("part-%d-of-%d", p.I, p.N)
}

// Of lists the outputs that the part makes.
func (p Part) Of(all []*Output) []*Output {
	if p.Whole() {
		return all
	}
	makers := Assign(all, p.N)
	return slices.DeleteFunc(slices.Clone(all), func(o *Output) bool { return makers[o] != p.I })
}

// Assign gives each output with units to one of n parts, counted from 1. It starts with the largest
// output, and gives each to the part with the fewest bytes so far. The result depends only on the
// plan. The finishing run makes outputs without units (the remainder).
func Assign(outputs []*Output, n int) map[*Output]int {
	bySize := slices.Clone(outputs)
	slices.SortStableFunc(bySize, func(a, b *Output) int { return cmp.Compare(b.Size, a.Size) })
	load := make([]int64, n)
	makers := map[*Output]int{}
	for _, o := range bySize {
		if len(o.Units) == 0 {
			continue
		}
		least := slices.Index(load, slices.Min(load))
		load[least] += o.Size
		makers[o] = least + 1
	}
	return makers
}
