// Package budget computes, before a conversion runs, how large its result will be and what it
// needs, and divides disk and memory. It reads only samples of the weights. While the conversion
// runs, other packages keep to the budgets.
package budget

import (
	"math"
	"slices"
	"sort"

	"github.com/df11-convert/df11-convert/internal/spans"
)

// Demand is the disk and memory that outputs need while source files are streamed in order.
type Demand struct {
	arrivals []arrival
	spooled  []*spans.Output // spooled: their source bytes wait in a spool
	begun    int64           // bytes of further spools, which an earlier run has begun on the disk
	memory   int64           // for spools
	// size of the largest finished file; 0 if files don't wait for an upload
	outMin int64
}

// NewDemand computes what outputs need. segments are theirs; local says whether the source is. With
// wait, finished files stay on disk until they're uploaded.
func NewDemand(outputs []*spans.Output, segments [][]spans.Segment, local, wait bool,
	memory int64) *Demand {
	d := &Demand{arrivals: inFileOrder(segments, local), memory: memory}
	for _, o := range outputs {
		if o.Spooled(local) {
			d.spooled = append(d.spooled, o)
		}
	}
	if wait {
		d.outMin = largest(outputs, 1, (*spans.Output).MaxBytes)
	}
	return d
}

// Continue returns the demand of the other outputs if an earlier run has begun the spools of some on
// the disk. These stay there, because in memory they would begin again. They take their size from
// the start to the end, however early their last byte arrives.
func (d Demand) Continue(begun []*spans.Output) *Demand {
	is := map[*spans.Output]bool{}
	for _, o := range begun {
		is[o] = true
		d.begun += o.Size
	}
	d.arrivals = slices.DeleteFunc(slices.Clone(d.arrivals), func(a arrival) bool { return is[a.output] })
	d.spooled = slices.DeleteFunc(slices.Clone(d.spooled), func(o *spans.Output) bool { return is[o] })
	return &d
}

// Shares is how disk and memory are divided.
type Shares struct {
	// of the disk, for spools and for finished files; 0: no limit
	Spools, Outputs int64
	Memory          int64                  // for spools in memory
	InMemory        map[*spans.Output]bool // outputs whose spool is memory
}

// Divide decides which spools are in memory and how to divide the disk; 0 means no limit. If the
// spools don't fit on the disk, even with as many in memory as possible, the error is a DiskError.
func (d *Demand) Divide(disk int64) (Shares, error) {
	for _, inMemory := range d.choices() {
		onDisk := d.onDisk(inMemory)
		if d.peak(inMemory) <= d.memory && (disk == 0 || onDisk+d.outMin <= disk) {
			return d.share(disk, onDisk, inMemory), nil
		}
	}
	return Shares{}, &DiskError{Need: d.Least(), Have: disk}
}

// Least returns the smallest disk that can be divided. It holds the spools that don't fit into
// memory and, if finished files wait, the largest of them.
func (d *Demand) Least() int64 {
	least := int64(math.MaxInt64)
	for _, inMemory := range d.choices() {
		if d.peak(inMemory) <= d.memory {
			least = min(least, d.onDisk(inMemory)+d.outMin)
		}
	}
	return least
}

// choices lists which spools may be in memory, the best choice first. The first choice is small
// spools, which may fill half of the memory; the other half lets the fetcher run ahead. The
// remainder isn't among them: it collects norms from every layer, so losing it in a kill would mean
// reading every file again. If the disk is too small for the other spools, the second choice puts
// those above some size into memory, as many as fit: fewer would only need more of the disk.
func (d *Demand) choices() []choice {
	sizes := []int64{0}
	for _, o := range d.spooled {
		sizes = append(sizes, o.Size)
	}
	slices.Sort(sizes)
	sizes = slices.Compact(sizes)
	small := d.largestWithin(sizes, d.memory/2)
	list := []choice{func(o *spans.Output) bool { return o.Size <= small && len(o.Units) > 0 }}
	above := func(size int64) choice { return func(o *spans.Output) bool { return o.Size > size } }
	fits := sort.Search(len(sizes), func(i int) bool { return d.peak(above(sizes[i])) <= d.memory })
	if fits < len(sizes) {
		list = append(list, above(sizes[fits]))
	}
	return list
}

// largestWithin returns the largest of rising sizes such that all spools up to that size never hold
// more than limit together.
func (d *Demand) largestWithin(sizes []int64, limit int64) int64 {
	tooMany := sort.Search(len(sizes), func(i int) bool {
		return d.peak(func(o *spans.Output) bool { return o.Size <= sizes[i] }) > limit
	})
	if tooMany == 0 {
		return 0
	}
	return sizes[tooMany-1]
}

// onDisk returns the most that the spools on disk hold together.
func (d *Demand) onDisk(inMemory choice) int64 {
	return d.begun + d.peak(func(o *spans.Output) bool { return !inMemory(o) })
}

// share gives spools and finished files what they need, plus half of the remaining disk each.
// onDisk is what the spools on disk need.
func (d *Demand) share(disk, onDisk int64, inMemory choice) Shares {
	s := Shares{Memory: d.memory, InMemory: map[*spans.Output]bool{}}
	for _, o := range d.spooled {
		s.InMemory[o] = o.Size == 0 || inMemory(o)
	}
	switch spare := disk - onDisk - d.outMin; {
	case disk == 0: // no limit
	case onDisk == 0:
		s.Spools, s.Outputs = 1, disk
	default:
		s.Spools, s.Outputs = onDisk+spare/2, d.outMin+spare/2
	}
	return s
}
