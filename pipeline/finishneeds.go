package pipeline

import (
	"cmp"
	"slices"
)

// finishNeeds is what the run takes that finishes parts: each source file is proved from the outputs that it went into,
// which come back whole while the disk has room for them, and stay while the next file needs them as well.
func (b Budget) finishNeeds(tasks []*task, segs [][]segment, size func(*task) int64) (disk, download int64) {
	open := map[*task]bool{}
	var onDisk int64
	for _, file := range segs {
		used := usedBy(file)
		for t := range open {
			if !slices.Contains(used, t) {
				delete(open, t)
				onDisk -= size(t)
			}
		}
		for _, t := range used {
			if open[t] {
				continue
			}
			download += size(t)
			if b.Disk > 0 && onDisk+size(t) > b.Disk {
				continue
			}
			open[t] = true
			onDisk += size(t)
			disk = max(disk, onDisk)
		}
	}
	for _, t := range tasks {
		if len(t.units) == 0 {
			download += t.size
		}
	}
	return disk, download
}

// usedBy lists the tasks that want something of a file, by name.
func usedBy(segs []segment) (used []*task) {
	for _, s := range segs {
		for _, d := range s.dst {
			if !slices.Contains(used, d.task) {
				used = append(used, d.task)
			}
		}
	}
	slices.SortFunc(used, func(a, b *task) int { return cmp.Compare(a.path, b.path) })
	return used
}
