package pipeline

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"

	"github.com/df11-convert/df11-convert/encoder"
)

// expected lists the prefix digests that finished outputs saw, by the prefix's end.
func (f *fetcher) expected(fs *fileState, from int64, h hash.Hash) map[int64]string {
	m := map[int64]string{}
	if h == nil {
		return m
	}
	for _, t := range f.tasks {
		o, ok := f.ledger.output(t.path)
		if !ok {
			continue
		}
		for _, p := range o.Prefixes {
			if p.File == fs.path && p.End > from {
				m[p.End] = p.SHA256
			}
		}
	}
	return m
}

// dealer gives the blocks of one file to the tasks that want them.
type dealer struct {
	f       *fetcher
	fs      *fileState
	want    func(delivery) bool
	expect  map[int64]string
	inexact int64  // F32 values of this segment that BF16 can't hold
	narrow  []byte // scratch
}

func (d *dealer) deal(ctx context.Context, b block) error {
	end := b.off + int64(len(b.buf))
	if want := d.expect[end]; want != "" && b.prefix != "" && b.prefix != want {
		return &SourceError{File: d.fs.path, Want: want, Got: b.prefix, End: end}
	}
	if b.seg < 0 {
		return nil
	}
	seg := d.fs.segs[b.seg]
	for _, to := range seg.dst {
		if !d.want(to) {
			continue
		}
		if err := d.f.start(ctx, to.task); err != nil {
			return err
		}
		if err := d.deliver(ctx, b, seg, to); err != nil {
			return err
		}
	}
	return nil
}

// deliver writes a block to one task's spool, counts its exponents, and hands the task on when it is complete.
func (d *dealer) deliver(ctx context.Context, b block, seg segment, to delivery) error {
	p, rel := b.buf, b.off-seg.off
	if to.narrow {
		d.narrow, d.inexact = narrowF32(d.narrow, p, d.inexact)
		p, rel = d.narrow, rel/2
	}
	if have := min(held(to.task, to.at)-rel, int64(len(p))); have > 0 {
		p, rel = p[have:], rel+have // an earlier run has brought them
	}
	if len(p) == 0 {
		return nil
	}
	if n, err := to.task.spool.WriteAt(p, to.at+rel); err != nil {
		return fmt.Errorf("write spool: %w", err)
	} else if n < len(p) {
		return fmt.Errorf("write spool: %w", io.ErrShortWrite)
	}
	if to.unit != nil && to.unit.counter != nil {
		to.unit.counter.Add((to.at+rel-to.unit.at)/2, p)
	}
	if b.off+int64(len(b.buf)) == seg.end {
		if err := d.segmentEnd(b, seg, to); err != nil {
			return err
		}
	}
	to.task.holds.hold(to.at, rel, p)
	d.f.arrived(int64(len(p)))
	if to.task.left.Add(-int64(len(p))) == 0 {
		return d.f.emit(ctx, to.task)
	}
	return nil
}

// segmentEnd records the prefix that the task has now seen, and refuses an F32 tensor that is not exact.
func (d *dealer) segmentEnd(b block, seg segment, to delivery) error {
	if to.narrow && d.inexact > 0 {
		return &InexactError{File: d.fs.path, Offset: seg.off, Values: d.inexact, Of: (seg.end - seg.off) / 4}
	}
	d.inexact = 0
	if to.last && b.prefix != "" {
		to.task.sawPrefix(Prefix{d.fs.path, seg.end, b.prefix})
	}
	return nil
}

// sawPrefix notes a prefix in place of what was noted of the same file before.
func (t *task) sawPrefix(p Prefix) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.prefixes = append(slices.DeleteFunc(t.prefixes, func(old Prefix) bool { return old.File == p.File }), p)
}

// InexactError says that an F32 tensor does not fit BF16 without loss.
type InexactError struct {
	File       string
	Offset     int64
	Values, Of int64
}

func (e *InexactError) Error() string {
	return fmt.Sprintf("F32 tensor at offset %d of %s: %d of %d values are not exact in BF16", e.Offset, e.File, e.Values, e.Of)
}

// narrowF32 writes the upper halves of the F32 values in src to dst, which it may grow, and counts in inexact those
// whose lower half is not zero.
func narrowF32(dst, src []byte, inexact int64) ([]byte, int64) {
	if cap(dst) < len(src)/2 {
		dst = make([]byte, blockBytes/2)
	}
	dst = dst[:len(src)/2]
	for i := 0; i+4 <= len(src); i += 4 {
		if src[i]|src[i+1] != 0 {
			inexact++
		}
		dst[i/2], dst[i/2+1] = src[i+2], src[i+3]
	}
	return dst, inexact
}

// newCounters makes a counter for each unit of a task that DF11 may hold.
func newCounters(t *task) error {
	for _, u := range t.units {
		if u.Unholdable != "" {
			continue
		}
		c, err := encoder.NewCounter(u.sizes)
		if unsupported := (*encoder.UnsupportedError)(nil); errors.As(err, &unsupported) {
			u.Unholdable = string(unsupported.Reason)
			continue
		}
		if err != nil {
			return fmt.Errorf("unit %s: %w", u.Path, err)
		}
		u.counter = c
	}
	return nil
}
