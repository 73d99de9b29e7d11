package pipeline

import (
	"cmp"
	"slices"
)

// sealers is how many finished files can be between converter and upload: two are hashed, and one is put in its place.
// tasksAhead is how many complete tasks may wait for the converter, so that the fetcher goes on while a large one is
// converted.
const (
	sealers    = 3
	tasksAhead = 4
)

// defaultSpoolMemory is for spools in memory where nobody says how much there is.
const defaultSpoolMemory = 64 << 20

// demand is what there is for spools and finished files, and who needs it. A disk of 0 has no bound.
type demand struct {
	spooled      func(*task) bool // whose source bytes wait in a spool
	outputs      bool             // finished files wait for their upload
	disk, memory int64            // memory as Options.SpoolMemory has it
}

// division is how the demand is met: the shares of the disk, 0 for no bound, and the memory for spools.
type division struct {
	spools, outputs, memory int64
	byTask                  bool // shards can't be streamed in order, tensors are fetched task by task
}

// divide decides which spools are memory and how the disk is shared out. Small spools are memory, of which half stays
// free, so that the fetcher can be ahead. Where the disk is too small for the others, more of them are memory, and where
// that is too small as well, tensors are fetched task by task.
func divide(tasks []*task, segs [][]segment, want demand) (division, error) {
	memory := max(0, cmp.Or(want.memory, defaultSpoolMemory))
	d := divider{tasks: tasks, segs: segs, demand: want, memory: memory}
	if want.outputs {
		for _, t := range tasks {
			d.outMin = max(d.outMin, t.maxOutput())
		}
	}
	small := d.largestWithin(memory / 2)
	choices := []func(*task) bool{func(t *task) bool { return t.size <= small }, func(*task) bool { return true }}
	for _, size := range slices.Backward(d.sizes()) {
		choices = append(choices, func(t *task) bool { return t.size >= size })
	}
	for _, inMemory := range choices {
		if out, ok := d.stream(inMemory); ok {
			return out, nil
		}
	}
	return d.byTask(small)
}

type divider struct {
	demand
	tasks          []*task
	segs           [][]segment
	memory, outMin int64
}

// sizes lists the sizes of spools, rising.
func (d *divider) sizes() (sizes []int64) {
	for _, t := range d.tasks {
		if d.spooled(t) {
			sizes = append(sizes, t.size)
		}
	}
	slices.Sort(sizes)
	return slices.Compact(sizes)
}

// largestWithin finds the largest size of which the spools up to it never hold more than limit together.
func (d *divider) largestWithin(limit int64) int64 {
	sizes := d.sizes()
	n, _ := slices.BinarySearchFunc(sizes, limit, func(size, limit int64) int {
		if d.peak(func(t *task) bool { return t.size <= size }) <= limit {
			return -1
		}
		return 1
	})
	if n == 0 {
		return 0
	}
	return sizes[n-1]
}

func (d *divider) peak(of func(*task) bool) int64 {
	return peakSpool(d.segs, func(t *task) bool { return d.spooled(t) && of(t) })
}

// stream shares out the disk for streaming shards in order with some spools in memory, if that fits.
func (d *divider) stream(inMemory func(*task) bool) (division, bool) {
	if d.peak(inMemory) > d.memory {
		return division{}, false
	}
	onDisk := d.peak(func(t *task) bool { return !inMemory(t) })
	spare := d.disk - onDisk - d.outMin
	if d.disk > 0 && spare < 0 {
		return division{}, false
	}
	d.choose(inMemory)
	if d.disk == 0 {
		return division{memory: d.memory}, true
	}
	if onDisk == 0 {
		return division{spools: 1, outputs: d.disk, memory: d.memory}, true
	}
	return division{spools: onDisk + spare/2, outputs: d.outMin + spare/2, memory: d.memory}, true
}

// byTask shares out the disk for one task after the other; those that it can't hold are memory.
func (d *divider) byTask(small int64) (division, error) {
	room := d.disk - d.outMin
	inMemory := func(t *task) bool { return t.size <= small || t.size > room }
	var largest, need int64
	for _, t := range d.tasks {
		switch {
		case !d.spooled(t):
		case inMemory(t) && t.size > d.memory:
			need = max(need, t.size)
		case !inMemory(t):
			largest = max(largest, t.size)
		}
	}
	if need > 0 || room < 0 {
		return division{}, &BudgetError{Need: need + d.outMin, Have: d.disk}
	}
	d.choose(inMemory)
	spare := room - largest
	if largest == 0 {
		return division{spools: 1, outputs: d.disk, memory: d.memory, byTask: true}, nil
	}
	return division{spools: largest + spare/2, outputs: d.outMin + spare/2, memory: d.memory, byTask: true}, nil
}

// choose tells the tasks where their spools will be.
func (d *divider) choose(inMemory func(*task) bool) {
	for _, t := range d.tasks {
		t.inMemory = t.size == 0 || d.spooled(t) && inMemory(t)
	}
}
