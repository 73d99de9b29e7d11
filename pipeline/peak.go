package pipeline

import "github.com/df11-convert/df11-convert/internal/plan"

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

// onDisk and inMemory are what a task's spool takes of either.
func onDisk(t *task) int64 {
	if t.inMemory {
		return 0
	}
	return t.size
}

func inMemory(t *task) int64 { return t.size - onDisk(t) }

// peakDisk is the most that spools and finished files take together while uploads are slower than everything else: each
// finished file then waits for those before it, and the fetcher runs ahead. A limit of 0 is none. size gives the
// bytes of a task's output.
func peakDisk(as []arrival, size func(*task) int64, spoolLimit, outLimit int64, uploads int) (peak int64) {
	var outs []int64
	peakOpen(as, onDisk, spoolLimit, func(t *task, open int64) {
		outs = append(outs, size(t))
		peak = max(peak, open+waiting(outs, outLimit, uploads+sealers+1))
	})
	return peak
}

// peakOpen is the most that spools take together, of those bytes that spool counts of a task. complete is called for
// each task with what they take once it is complete and the fetcher has gone as far ahead as it can.
func peakOpen(as []arrival, spool func(*task) int64, limit int64, complete func(t *task, open int64)) (peak int64) {
	var open int64 // spools of tasks that have begun and not been converted
	for i, a := range as {
		if a.begin {
			open += spool(a.task)
		}
		if !a.last {
			continue
		}
		most := open + ahead(as[i+1:], spool, open, limit)
		peak = max(peak, most)
		complete(a.task, most)
		open -= spool(a.task)
	}
	return peak
}

// ahead is what the fetcher adds to open spools until the limit stops it, or a complete task for which no place is left.
func ahead(as []arrival, spool func(*task) int64, open, limit int64) (more int64) {
	complete := 0
	for _, a := range as {
		if a.begin {
			if limit > 0 && open+more+spool(a.task) > limit {
				break
			}
			more += spool(a.task)
		}
		if a.last {
			if complete++; complete > tasksAhead {
				break
			}
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
	Workers, Uploads  int
	Disk, SpoolMemory int64 // as Options have them
	Buffers           int64 // what is fetched ahead, in memory
	Memory            int64 // that all together may take; 0 is no bound
	Part              Part
}

// peaks are the most that a conversion with --push alone takes of the disk, and of memory for spools, for outputs of the
// estimated sizes; an error says that nothing fits.
func (b Budget) peaks(m *Model, p *plan.Plan, e *Estimate) (disk, memory int64, err error) {
	tasks := newTasks(p)
	outputs := map[*task]int64{}
	for i, t := range tasks {
		outputs[t] = e.Files[i]
	}
	tasks = (&run{Options: Options{Part: b.Part}}).ours(tasks)
	segs := segments(tasks, len(m.Plan.Weights))
	d, err := divide(tasks, segs, demand{
		spooled: func(t *task) bool { return !m.Local || t.narrows() }, outputs: true, disk: b.Disk, memory: b.SpoolMemory,
	})
	if err != nil {
		return 0, 0, err
	}
	size := func(t *task) int64 { return outputs[t] }
	if m.Local {
		return peakOutputs(tasks, size, d.outputs, max(1, b.Uploads)), 0, nil
	}
	as := arrivals(tasks, segs, d.byTask)
	memory = peakOpen(as, inMemory, d.memory, func(*task, int64) {})
	return peakDisk(as, size, d.spools, d.outputs, max(1, b.Uploads)), memory, nil
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
