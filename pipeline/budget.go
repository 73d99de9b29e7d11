package pipeline

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/semaphore"
)

// A budget hands out bytes of disk or memory. The zero value of the limit means no limit.
type budget struct {
	name  string
	limit int64
	sem   *semaphore.Weighted
}

func newBudget(name string, limit int64) *budget {
	b := &budget{name: name, limit: limit}
	if limit > 0 {
		b.sem = semaphore.NewWeighted(limit)
	}
	return b
}

// acquire waits until n bytes are free. A request above the whole limit is an error at once: it could never be met.
func (b *budget) acquire(ctx context.Context, n int64) error {
	if b.sem == nil {
		return nil
	}
	if n > b.limit {
		return fmt.Errorf("%s budget of %d bytes can't hold the %d bytes that one output needs", b.name, b.limit, n)
	}
	if err := b.sem.Acquire(ctx, n); err != nil {
		return context.Cause(ctx)
	}
	return nil
}

// tryAcquire takes n bytes if they are free.
func (b *budget) tryAcquire(n int64) bool { return b.sem == nil || b.sem.TryAcquire(n) }

func (b *budget) release(n int64) {
	if b.sem != nil {
		b.sem.Release(n)
	}
}

// peakSpool simulates the arrival of all tensors in file order and gives the most bytes that unfinished spools hold at
// once, of those tasks that need one. Finished ones count as given back, so a budget of this size can make the fetcher
// wait but never block it. Some may be open from the beginning.
func peakSpool(segs [][]segment, spooled func(*task) bool, begun ...*task) int64 {
	left := map[*task]int64{}
	var open, peak int64
	for _, t := range begun {
		left[t] = t.size
		open += t.size
	}
	for _, file := range segs {
		for _, s := range file {
			for _, d := range s.dst {
				if !spooled(d.task) {
					continue
				}
				if _, seen := left[d.task]; !seen {
					left[d.task] = d.task.size
					open += d.task.size
				}
				peak = max(peak, open)
				n := s.end - s.off
				if d.narrow {
					n /= 2
				}
				if left[d.task] -= n; left[d.task] == 0 {
					open -= d.task.size
				}
			}
		}
	}
	return peak
}

// maxOutput bounds the size of a task's output file: DF11 of the worst exponents, or BF16 with its header.
func (t *task) maxOutput() int64 { return t.size + t.size/8 + 1<<20 }

// BudgetError says that a conversion can't fit, and what it would need.
type BudgetError struct {
	Need, Have int64
}

func (e *BudgetError) Error() string {
	return fmt.Sprintf("at least %d bytes of disk are needed, there are %d", e.Need, e.Have)
}

// budgets divides disk and memory between spools and finished files that wait for their upload, and decides whether shards
// can be streamed in order within them, or each task's tensors are fetched by ranges. Kept spools of earlier runs take
// so much of the disk already.
func (r *run) budgets(segs [][]segment, kept int64) error {
	disk, err := r.disk(kept)
	if err != nil {
		return err
	}
	r.diskLimit = disk
	done := func(t *task) bool { _, ok := r.ledger.output(t.path); return ok }
	d, err := divide(slices.DeleteFunc(slices.Clone(r.tasks), done), segs, demand{
		spooled: func(t *task) bool { return !done(t) && !r.readsLocal(t) }, outputs: !r.store.keep, disk: disk, memory: r.SpoolMemory,
	})
	if err != nil {
		return err
	}
	r.spools, r.outputs, r.memory = newBudget("disk", d.spools), newBudget("disk", d.outputs), newBudget("memory", d.memory)
	r.byTask = d.byTask
	return nil
}

// leftovers lists the outputs of earlier runs that take disk until they are uploaded.
func (r *run) leftovers() []Output {
	if r.store.keep {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(r.unpublished), func(o Output) bool { return o.Uploaded })
}

// chargeLeftovers takes their bytes from the share of outputs, or where that is used up from what spools leave. They are
// uploaded whatever else waits, so this can't block for ever.
func (r *run) chargeLeftovers() {
	r.charged = map[string]*budget{}
	for _, o := range r.leftovers() {
		r.charged[o.Path] = nil
		for _, b := range []*budget{r.outputs, r.spools} {
			if b.tryAcquire(o.Size) {
				r.charged[o.Path] = b
				break
			}
		}
	}
}

// spareDisk is what is left free of a disk whose size nobody set a budget for: this much, or a twentieth of a small one.
const spareDisk = 256 << 20

// leastRatio is less than what DF11 leaves of trained weights (67 %): who has not even that much room need not begin.
const leastRatio = 0.6

// disk is the budget for what is on its way: the given one, else what is free. 0 is no bound. Outputs that stay must have
// room beside it.
func (r *run) disk(kept int64) (int64, error) {
	free, known := freeSpace(r.store.dir)
	if !known {
		return r.Disk, nil
	}
	free += kept
	for _, o := range r.leftovers() {
		free += o.Size // they are charged
	}
	free = max(1, free-min(spareDisk, free/20))
	if r.store.keep {
		stays := int64(leastRatio * float64(r.pendingBytes()))
		if stays > free {
			return 0, &BudgetError{Need: stays, Have: free}
		}
		free -= stays
	}
	if r.Disk > 0 {
		return r.Disk, nil
	}
	return max(1, free), nil
}

// pendingBytes are the source bytes of outputs that are still to be made.
func (r *run) pendingBytes() (n int64) {
	for _, t := range r.tasks {
		if _, done := r.ledger.output(t.path); !done {
			n += t.size
		}
	}
	return n
}
