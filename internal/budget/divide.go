// Package budget says how disk and memory are shared out, before a conversion for its plan, and when it begins. It guards no
// budget while the conversion runs.
package budget

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// defaultSpoolMemory is for spools in memory where nobody says how much there is.
const defaultSpoolMemory = 64 << 20

// spoolMemory is what spools may take of memory: 0 asks for the default, less than 0 for none.
func spoolMemory(limit int64) int64 { return max(0, cmp.Or(limit, defaultSpoolMemory)) }

// DiskError says that a conversion does not fit on the disk, and the smallest budget with which it would.
type DiskError struct {
	Need, Have int64
	Folder     string // whose disk has no more; "" where Have is a budget
	Result     int64  // of Need: what stays in the folder
}

func (e *DiskError) Error() string {
	if e.Folder != "" {
		return fmt.Sprintf("%s: %s free, at least %s needed (%s result, %s temporary): %s missing", e.Folder, human.Bytes(e.Have),
			human.BytesUp(e.Need), human.Bytes(e.Result), human.Bytes(e.Need-e.Result), human.BytesUp(e.Need-e.Have))
	}
	return fmt.Sprintf("%s of disk is too little: at least %s are needed", human.Bytes(e.Have), human.BytesUp(e.Need))
}

// Demand is what there is for spools and finished files, and who needs it.
type Demand struct {
	Spooled func(*spans.Output) bool // the output's source bytes wait in a spool
	Outputs bool                     // finished files wait for their upload
	Disk    int64                    // 0: no bound
	Memory  int64                    // for spools; 0: the default, less than 0: none
}

// Shares is how a demand is met.
type Shares struct {
	Spools, Outputs int64                  // of the disk, for spools and for finished files; 0: no bound
	Memory          int64                  // for spools in memory
	InMemory        map[*spans.Output]bool // outputs whose spool is memory
}

// Divide decides which spools are memory and how the disk is shared out. A disk on which the spools of files that are streamed in
// order do not fit, with as many of them in memory as there is room for, is a DiskError.
func Divide(outputs []*spans.Output, segments [][]spans.Segment, want Demand) (Shares, error) {
	d := newDivider(outputs, segments, want)
	for _, inMemory := range d.choices() {
		if shares, ok := d.stream(inMemory); ok {
			return shares, nil
		}
	}
	return Shares{}, &DiskError{Need: d.least(), Have: d.Disk}
}

// Least is the smallest Disk with which Divide works: it holds the largest finished file, if such files wait, and the spools
// that do not fit into memory while files are streamed in order.
func (want Demand) Least(outputs []*spans.Output, segments [][]spans.Segment) (disk int64) {
	return newDivider(outputs, segments, want).least()
}

// choice picks the outputs whose spool is memory.
type choice func(*spans.Output) bool

type divider struct {
	Demand
	outputs  []*spans.Output
	arrivals []arrival
	outMin   int64 // what the largest finished file may take
}

func newDivider(outputs []*spans.Output, segments [][]spans.Segment, want Demand) *divider {
	d := &divider{Demand: want, outputs: outputs, arrivals: inFileOrder(segments)}
	d.Memory = spoolMemory(want.Memory)
	if want.Outputs {
		d.outMin = largestFile(outputs)
	}
	return d
}

// choices lists which spools may be memory, the best choice first. Small spools are, of which half of memory stays free, so that the
// fetcher can be ahead. The remainder is not: it collects norms from every layer, so losing it to a kill would mean reading every
// file again. Where the disk is too small for the other spools, all are memory, or those above some size, fewer and fewer of them.
func (d *divider) choices() []choice {
	small := d.largestWithin(d.Memory / 2)
	list := []choice{func(o *spans.Output) bool { return o.Size <= small && len(o.Units) > 0 }, func(*spans.Output) bool { return true }}
	for _, size := range d.sizes() {
		list = append(list, func(o *spans.Output) bool { return o.Size > size })
	}
	return list
}

// least is the least disk of all choices that memory allows.
func (d *divider) least() int64 {
	least := int64(math.MaxInt64)
	for _, inMemory := range d.choices() {
		if d.peak(inMemory) <= d.Memory {
			least = min(least, d.onDisk(inMemory)+d.outMin)
		}
	}
	return least
}

// onDisk is the most that the spools on disk hold together.
func (d *divider) onDisk(inMemory choice) int64 {
	return d.peak(func(o *spans.Output) bool { return !inMemory(o) })
}

// sizes lists the sizes of spools, rising.
func (d *divider) sizes() []int64 {
	var sizes []int64
	for _, o := range d.outputs {
		if d.Spooled(o) {
			sizes = append(sizes, o.Size)
		}
	}
	slices.Sort(sizes)
	return slices.Compact(sizes)
}

// largestWithin finds the largest size with which all spools up to that size never hold more than limit together.
func (d *divider) largestWithin(limit int64) int64 {
	var largest int64
	for _, size := range d.sizes() {
		if d.peak(func(o *spans.Output) bool { return o.Size <= size }) > limit {
			break
		}
		largest = size
	}
	return largest
}

// peak is the most that the spools of some outputs hold together.
func (d *divider) peak(of choice) int64 {
	return peakSpools(d.arrivals, func(o *spans.Output) bool { return d.Spooled(o) && of(o) }, 0)
}

// stream shares out the disk for streaming source files in order with some spools in memory, if that fits.
func (d *divider) stream(inMemory choice) (Shares, bool) {
	onDisk := d.onDisk(inMemory)
	if d.peak(inMemory) > d.Memory || d.Disk > 0 && onDisk+d.outMin > d.Disk {
		return Shares{}, false
	}
	return d.share(inMemory, onDisk), true
}

// share gives spools and finished files what they need at least, and half of the rest of the disk each. onDisk is what the
// spools on disk need.
func (d *divider) share(inMemory choice, onDisk int64) Shares {
	s := Shares{Memory: d.Memory, InMemory: map[*spans.Output]bool{}}
	for _, o := range d.outputs {
		s.InMemory[o] = o.Size == 0 || d.Spooled(o) && inMemory(o)
	}
	switch spare := d.Disk - onDisk - d.outMin; {
	case d.Disk == 0: // no bound
	case onDisk == 0:
		s.Spools, s.Outputs = 1, d.Disk
	default:
		s.Spools, s.Outputs = onDisk+spare/2, d.outMin+spare/2
	}
	return s
}
