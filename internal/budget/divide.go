// Package budget says before a conversion runs how large its result will be and what it needs, and
// shares out disk and memory. Of the weights it reads samples only. It guards no budget while the
// conversion runs.
package budget

import (
	"fmt"
	"math"
	"slices"

	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// DiskError says that a conversion does not fit on the disk, and the smallest budget with which it
// would.
type DiskError struct {
	Need, Have int64
	Folder     string // whose disk has no more; "" where Have is a budget
	Result     int64  // of Need: what stays in the folder
}

func (e *DiskError) Error() string {
	if e.Folder != "" {
		return fmt.Sprintf("%s: %s free, at least %s needed (%s result, %s temporary): %s missing",
			e.Folder, human.Bytes(e.Have),
			human.BytesUp(e.Need), human.Bytes(e.Result), human.Bytes(e.Need-e.Result),
			human.BytesUp(e.Need-e.Have))
	}
	return fmt.Sprintf("%s of disk is too little: at least %s are needed", human.Bytes(e.Have),
		human.BytesUp(e.Need))
}

// Demand is what outputs need of disk and memory while source files are streamed in order.
type Demand struct {
	arrivals []arrival
	spooled  []*spans.Output // their source bytes wait in a spool
	memory   int64           // for spools
	// what the largest finished file may take; 0 where none waits for its upload
	outMin int64
}

// NewDemand looks at the outputs of which the segments are, of a local source or another one. With
// wait, finished files wait for their upload.
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

// Shares is how a demand is met.
type Shares struct {
	// of the disk, for spools and for finished files; 0: no bound
	Spools, Outputs int64
	Memory          int64                  // for spools in memory
	InMemory        map[*spans.Output]bool // outputs whose spool is memory
}

// Divide decides which spools are memory and how the disk is shared out; 0 is no bound. A disk on
// which the spools do not fit, with as many of them in memory as there is room for, is a DiskError.
func (d *Demand) Divide(disk int64) (Shares, error) {
	for _, inMemory := range d.choices() {
		onDisk := d.onDisk(inMemory)
		if d.Peak(inMemory) <= d.memory && (disk == 0 || onDisk+d.outMin <= disk) {
			return d.share(disk, onDisk, inMemory), nil
		}
	}
	return Shares{}, &DiskError{Need: d.Least(), Have: disk}
}

// Least is the smallest disk that can be divided: it holds the largest finished file, if such files
// wait, and the spools that do not fit into memory.
func (d *Demand) Least() int64 {
	least := int64(math.MaxInt64)
	for _, inMemory := range d.choices() {
		if d.Peak(inMemory) <= d.memory {
			least = min(least, d.onDisk(inMemory)+d.outMin)
		}
	}
	return least
}

// choices lists which spools may be memory, the best choice first. Small spools are, of which half
// of memory stays free, so that the fetcher can be ahead. The remainder is not: it collects norms
// from every layer, so losing it to a kill would mean reading every file again. Where the disk is
// too small for the other spools, those above some size are, fewer and fewer of them.
func (d *Demand) choices() []choice {
	sizes := []int64{0}
	for _, o := range d.spooled {
		sizes = append(sizes, o.Size)
	}
	slices.Sort(sizes)
	sizes = slices.Compact(sizes)
	small := d.largestWithin(sizes, d.memory/2)
	list := []choice{func(o *spans.Output) bool { return o.Size <= small && len(o.Units) > 0 }}
	for _, size := range sizes {
		list = append(list, func(o *spans.Output) bool { return o.Size > size })
	}
	return list
}

// largestWithin finds the largest of rising sizes with which all spools up to that size never hold
// more than limit together.
func (d *Demand) largestWithin(sizes []int64, limit int64) (largest int64) {
	for _, size := range sizes {
		if d.Peak(func(o *spans.Output) bool { return o.Size <= size }) > limit {
			break
		}
		largest = size
	}
	return largest
}

// onDisk is the most that the spools on disk hold together.
func (d *Demand) onDisk(inMemory choice) int64 {
	return d.Peak(func(o *spans.Output) bool { return !inMemory(o) })
}

// share gives spools and finished files what they need at least, and half of the rest of the disk
// each. onDisk is what the spools on disk need.
func (d *Demand) share(disk, onDisk int64, inMemory choice) Shares {
	s := Shares{Memory: d.memory, InMemory: map[*spans.Output]bool{}}
	for _, o := range d.spooled {
		s.InMemory[o] = o.Size == 0 || inMemory(o)
	}
	switch spare := disk - onDisk - d.outMin; {
	case disk == 0: // no bound
	case onDisk == 0:
		s.Spools, s.Outputs = 1, disk
	default:
		s.Spools, s.Outputs = onDisk+spare/2, d.outMin+spare/2
	}
	return s
}
