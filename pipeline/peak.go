package pipeline

import "github.com/df11-convert/df11-convert/internal/plan"

// sealers is how many finished files are hashed at once.
const sealers = 2

// divideDisk gives spools and finished files their shares of a disk: each what it needs at least, and half of the rest.
// byTask says that shards can't be streamed in order within it, so that spools get what the largest task needs.
func divideDisk(disk, spoolMin, outMin, largest int64) (spools, outputs int64, byTask bool, err error) {
	if spoolMin+outMin > disk {
		byTask, spoolMin = true, largest
	}
	spare := disk - spoolMin - outMin
	if spare < 0 {
		return 0, 0, false, &BudgetError{Need: spoolMin + outMin, Have: disk}
	}
	return spoolMin + spare/2, outMin + spare/2, byTask, nil
}

// arrival is a moment at which a task gets its spool, its last byte, or both.
type arrival struct {
	task        *task
	begin, last bool
}

// arrivals lists these moments in the order in which bytes come: file after file, or task after task.
func arrivals(tasks []*task, segs [][]segment, byTask bool) (as []arrival) {
	if byTask {
		for _, t := range tasks {
			as = append(as, arrival{t, true, true})
		}
		return as
	}
	left := map[*task]int64{}
	for _, file := range segs {
		for _, s := range file {
			for _, d := range s.dst {
				n := s.end - s.off
				if d.narrow {
					n /= 2
				}
				before, seen := left[d.task]
				if !seen {
					before = d.task.size
				}
				left[d.task] = before - n
				as = append(as, arrival{d.task, !seen, before == n})
			}
		}
	}
	return as
}

// peakDisk is the most that spools and finished files take together while uploads are slower than everything else: each
// finished file then waits for those before it, and the fetcher runs one task ahead. A limit of 0 is none. size gives the
// bytes of a task's output.
func peakDisk(as []arrival, size func(*task) int64, spoolLimit, outLimit int64, uploads int) (peak int64) {
	var open int64 // spools of tasks that have begun and not been converted
	var outs []int64
	for i, a := range as {
		if a.begin {
			open += a.task.size
		}
		if !a.last {
			continue
		}
		outs = append(outs, size(a.task))
		peak = max(peak, open+ahead(as[i+1:], open, spoolLimit)+waiting(outs, outLimit, uploads+sealers+1))
		open -= a.task.size
	}
	return peak
}

// ahead is what the fetcher adds to open spools until the limit stops it, or a complete task that nobody takes yet.
func ahead(as []arrival, open, limit int64) (more int64) {
	for _, a := range as {
		if a.begin {
			if limit > 0 && open+more+a.task.size > limit {
				break
			}
			more += a.task.size
		}
		if a.last {
			break
		}
	}
	return more
}

// waiting adds up the newest n outputs, as many as the limit lets be there.
func waiting(outs []int64, limit int64, n int) (total int64) {
	for i := len(outs) - 1; i >= max(0, len(outs)-n); i-- {
		if limit > 0 && total > 0 && total+outs[i] > limit {
			break
		}
		total += outs[i]
	}
	return total
}

// Budget is what a conversion may use; zero values mean its defaults.
type Budget struct {
	Workers, Uploads int
	Disk             int64
	Buffers          int64 // what is fetched ahead, in memory
	Part             Part
}

// diskPush is the peak of disk with --push alone, for outputs of the estimated sizes; an error says that nothing fits.
func (b Budget) diskPush(m *Model, p *plan.Plan, e *Estimate) (int64, error) {
	tasks := newTasks(p)
	outputs := map[*task]int64{}
	for i, t := range tasks {
		outputs[t] = e.Files[i]
	}
	tasks = (&run{Options: Options{Part: b.Part}}).ours(tasks)
	spooled := func(t *task) bool { return !m.Local || t.narrows() }
	segs := segments(tasks, len(m.Plan.Weights))
	spoolMin := peakSpool(segs, spooled)
	var outMin, largest int64
	for _, t := range tasks {
		outMin = max(outMin, t.maxOutput())
		if spooled(t) {
			largest = max(largest, t.size)
		}
	}
	var spools, outs int64
	var byTask bool
	if b.Disk > 0 {
		var err error
		if spools, outs, byTask, err = divideDisk(b.Disk, spoolMin, outMin, largest); err != nil {
			return 0, err
		}
	}
	size := func(t *task) int64 { return outputs[t] }
	if m.Local {
		return peakOutputs(tasks, size, outs, max(1, b.Uploads)), nil
	}
	return peakDisk(arrivals(tasks, segs, byTask), size, spools, outs, max(1, b.Uploads)), nil
}

// peakOutputs is peakDisk without spools.
func peakOutputs(tasks []*task, size func(*task) int64, limit int64, uploads int) (peak int64) {
	var outs []int64
	for _, t := range tasks {
		outs = append(outs, size(t))
		peak = max(peak, waiting(outs, limit, uploads+sealers+1))
	}
	return peak
}
