package pipeline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"

	"github.com/df11-convert/df11-convert/encoder"
)

// expected lists the prefix digests that outputs and complete spools of earlier runs have seen, by the prefix's end.
func (f *fetcher) expected(fs *fileState, from int64, h hash.Hash) map[int64][]string {
	m := map[int64][]string{}
	if h == nil {
		return m
	}
	for _, t := range f.tasks {
		prefixes := t.seen()
		if o, done := f.ledger.output(t.path); done {
			prefixes = o.Prefixes
		}
		for _, p := range prefixes {
			if p.File == fs.path && p.End > from {
				m[p.End] = append(m[p.End], p.SHA256)
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
	expect  map[int64][]string
	inexact int64  // values of this segment that are narrowed and not exact in BF16
	narrow  []byte // the block in BF16
	old     []byte // scratch
}

func (d *dealer) deal(ctx context.Context, b block) error {
	end := b.off + int64(len(b.buf))
	for _, want := range d.expect[end] {
		if b.prefix != "" && b.prefix != want {
			return &SourceError{File: d.fs.path, Want: want, Got: b.prefix, End: end}
		}
	}
	if b.seg < 0 {
		return nil
	}
	seg := d.fs.segs[b.seg]
	if err := d.narrowBlock(b, seg); err != nil {
		return err
	}
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

// narrowBlock makes BF16 of a block if somebody wants it so. A segment that does not fit BF16 is refused before its last
// block is dealt, so that no task is ever complete with it.
func (d *dealer) narrowBlock(b block, seg segment) error {
	if b.off == seg.off {
		d.inexact = 0
	}
	i := slices.IndexFunc(seg.dst, func(to delivery) bool { return to.narrow && d.want(to) })
	if i < 0 {
		return nil
	}
	d.narrow, d.inexact = narrowF32(d.narrow, b.buf, d.inexact)
	if d.inexact > 0 && b.off+int64(len(b.buf)) == seg.end {
		return &InexactError{File: d.fs.path, Tensor: seg.dst[i].name, Values: d.inexact, Of: (seg.end - seg.off) / 4, Scope: ScopeTensor}
	}
	return nil
}

// deliver writes a block to one task's spool, counts its exponents, and hands the task on when it is complete.
func (d *dealer) deliver(ctx context.Context, b block, seg segment, to delivery) error {
	p, rel := b.buf, b.off-seg.off
	if to.narrow {
		p, rel = d.narrow, rel/2
	}
	if have := min(held(to.task, to.at)-rel, int64(len(p))); have > 0 {
		if err := d.sameAsHeld(b, to, rel, p[:have]); err != nil {
			return err
		}
		p, rel = p[have:], rel+have
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
	if to.last && b.prefix != "" && b.off+int64(len(b.buf)) == seg.end {
		to.task.sawPrefix(Prefix{d.fs.path, seg.end, b.prefix})
	}
	if !to.narrow || d.inexact == 0 { // a later run must meet what is not exact again
		to.task.holds.hold(to.at, rel, p)
	}
	d.f.arrived(int64(len(p)))
	if to.task.left.Add(-int64(len(p))) == 0 {
		return d.f.emit(ctx, to.task)
	}
	return nil
}

// sameAsHeld compares bytes that come once more, p, with those that an earlier run has left in the spool at rel of a
// tensor: the file's hash covers only what passes through it now. A complete task's spool may be gone; the prefix that it
// has seen is compared instead.
func (d *dealer) sameAsHeld(b block, to delivery, rel int64, p []byte) error {
	if to.task.left.Load() == 0 {
		return nil
	}
	if d.old == nil {
		d.old = make([]byte, blockBytes)
	}
	old := d.old[:len(p)]
	if n, err := to.task.spool.ReadAt(old, to.at+rel); n < len(old) {
		return fmt.Errorf("read spool: %w", readError(err))
	}
	if !bytes.Equal(old, p) {
		return &SourceError{File: d.fs.path, End: b.off + int64(len(b.buf))}
	}
	return nil
}

// sawPrefix notes a prefix in place of what was noted of the same file before.
func (t *task) sawPrefix(p Prefix) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.prefixes = append(slices.DeleteFunc(t.prefixes, func(old Prefix) bool { return old.File == p.File }), p)
}

// seen lists the prefixes that the task has seen.
func (t *task) seen() []Prefix {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.prefixes)
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
