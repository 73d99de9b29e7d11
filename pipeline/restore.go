package pipeline

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/df11-convert/df11-convert/internal/plan"
)

// defaultSpoolSync is after how many bytes spools are put on disk: what the end of the machine may lose. A kill of the
// process alone loses a share of that.
const (
	defaultSpoolSync = 256 << 20
	notesPerSync     = 8
)

// A saver makes spools survive: it has them noted and put on disk whenever enough bytes have come. That does not hold up
// those who write them: while it is under way, nobody is asked again.
type saver struct{ note, sync alarm }

func newSaver(every int64) *saver {
	s := &saver{alarm{every: every, wake: make(chan struct{}, 1)}, alarm{every: every, wake: make(chan struct{}, 1)}}
	if every > 0 {
		s.note.every = max(1, every/notesPerSync)
	}
	return s
}

// arrived counts bytes that went into spools.
func (s *saver) arrived(n int64) {
	s.note.count(n)
	s.sync.count(n)
}

// end is called when no more bytes come.
func (s *saver) end() {
	close(s.note.wake)
	close(s.sync.wake)
}

// alarm rings after a number of bytes, never if that is negative.
type alarm struct {
	every int64
	fresh atomic.Int64
	wake  chan struct{}
}

func (a *alarm) count(n int64) {
	if a.every < 0 || a.fresh.Add(n) < a.every {
		return
	}
	select {
	case a.wake <- struct{}{}:
		a.fresh.Store(0)
	default:
	}
}

// noteLoop notes until the fetcher has ended.
func (r *run) noteLoop(s *saver) error {
	digest := r.Plan.Digest()
	for range s.note.wake {
		for _, t := range r.tasks {
			if err := t.noteSpool(digest); err != nil {
				return fmt.Errorf("note what arrived of %s: %w", t.path, err)
			}
		}
	}
	return nil
}

// saveLoop puts spools on disk until the fetcher has ended.
func (r *run) saveLoop(s *saver) error {
	digest := r.Plan.Digest()
	for range s.sync.wake {
		for _, t := range r.tasks {
			if err := t.saveSpool(digest); err != nil {
				return fmt.Errorf("keep what arrived of %s: %w", t.path, err)
			}
		}
		if err := r.saveJournal(); err != nil {
			return err
		}
	}
	return nil
}

// findSpools reads the notes and records of kept spools that this run can use, by output, that with more bytes first. All
// other spools in the store are deleted: those of outputs that are done, of other plans, and those without a record.
func (r *run) findSpools() (map[string][]spoolState, error) {
	found, digest := map[string][]spoolState{}, r.Plan.Digest()
	usable := map[string]bool{}
	for _, t := range r.tasks {
		if _, done := r.ledger.output(t.path); done || r.readsLocal(t) {
			continue
		}
		path := spoolPath(r.store.state, t)
		for _, kind := range []string{spoolNote, spoolRecord} {
			if s, ok := readSpoolState(path+kind, digest, t); ok {
				found[t.path], usable[path] = append(found[t.path], s), true
			}
		}
		slices.SortStableFunc(found[t.path], func(a, b spoolState) int { return cmp.Compare(b.bytes(), a.bytes()) })
	}
	names, err := filepath.Glob(filepath.Join(r.store.state, spoolPrefix+"*"))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if base, _, _ := strings.Cut(filepath.Base(name), "."); !usable[filepath.Join(r.store.state, base)] {
			if err := removeIfThere(name); err != nil {
				return nil, err
			}
		}
	}
	return found, nil
}

// readSpoolState reads a task's record or note; ok is false if there is none, or one of another plan or output.
func readSpoolState(name, digest string, t *task) (s spoolState, ok bool) {
	b, err := os.ReadFile(name)
	if err != nil || json.Unmarshal(b, &s) != nil {
		return s, false
	}
	return s, s.Version == spoolVersion && s.Plan == digest && s.Output == t.path && s.Size == t.size
}

// heldBytes is how much of the disk kept spools take.
func heldBytes(found map[string][]spoolState) (n int64) {
	for _, states := range found {
		n += states[0].bytes()
	}
	return n
}

// bytes counts what the state names.
func (s spoolState) bytes() (n int64) {
	for _, r := range s.Runs {
		n += r.N
	}
	return n
}

// restoreSpools takes up what earlier runs have kept: each spool is read, its checksums are compared, and its exponents
// are counted again. A spool that is not as its record says is deleted. So are all of them where their budget would let
// the fetcher wait for ever.
func (r *run) restoreSpools(ctx context.Context, found map[string][]spoolState, segs [][]segment) error {
	if !r.byTask && !r.fitBeside(found, segs) {
		clear(found)
	}
	for _, t := range r.tasks {
		states, ok := found[t.path]
		if !ok || t.inMemory || !r.spools.tryAcquire(t.size) {
			if err := removeSpool(spoolPath(r.store.state, t)); err != nil {
				return err
			}
			continue
		}
		if err := r.restore(ctx, t, states); err != nil {
			return fmt.Errorf("take up the spool of %s: %w", t.path, err)
		}
	}
	return nil
}

// fitBeside tells whether the spools that are still to come fit beside the kept ones in whatever order they fill up.
func (r *run) fitBeside(found map[string][]spoolState, segs [][]segment) bool {
	var open []*task
	for _, t := range r.tasks {
		if _, ok := found[t.path]; ok {
			open = append(open, t)
		}
	}
	pending := func(t *task) bool {
		_, done := r.ledger.output(t.path)
		return !done && !t.inMemory && !r.readsLocal(t)
	}
	return r.spools.limit == 0 || peakSpool(segs, pending, open...) <= r.spools.limit
}

// restore opens a task's kept spool, whose budget is taken, with the first state that its bytes confirm.
func (r *run) restore(ctx context.Context, t *task, states []spoolState) error {
	path := spoolPath(r.store.state, t)
	k, err := newKeptSpool(path, true)
	if err == nil {
		for i, s := range states {
			if err = t.recount(ctx, k, s.Runs); err == nil {
				states = states[i:]
				break
			}
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		r.Log.Warn("a kept spool is of no use", "output", t.path, "err", err)
		if k != nil {
			_ = k.keep() // it is closed, and deleted below
		}
		for _, u := range t.units {
			u.counter = nil
		}
		r.spools.release(t.size)
		return removeSpool(path)
	}
	t.once.Do(func() {}) // begin is done
	t.prefixes = states[0].Prefixes
	t.spool, t.restored = r.ownSpool(t, k), true
	t.holds.keepIn(k, states[0].Runs)
	t.holds.touch()
	for _, run := range states[0].Runs {
		t.left.Add(-run.N)
		r.Progress.Fetched.Add(run.N)
	}
	r.Log.Info("spool taken up", "output", t.path, "bytes", t.size-t.left.Load(), "of", t.size)
	return nil
}

// trimCheckpoints makes the hash of every source file one that covers what is there. A checkpoint behind bytes that are to
// be read again belongs to others than those that will come. Where something complete was made of bytes that no hash has
// seen, streaming the rest proves nothing, and the file is to be proved.
func (r *run) trimCheckpoints() {
	done := func(t *task) bool { _, ok := r.ledger.output(t.path); return ok }
	for _, fs := range r.files {
		first := fs.firstPending(done, held)
		c := r.ledger.file(fs.path)
		c.File = fs.path
		if c.Integrity != "" && fs.firstPending(done, nothing) < fs.size {
			c = Checkpoint{File: fs.path}
		}
		if c.Offset > first {
			c.Offset, c.State = 0, nil
		}
		if c.KeptOffset > first {
			c.KeptOffset, c.KeptState = 0, nil
		}
		r.ledger.setFile(c)
		fs.unchecked = fs.unchecked || c.Integrity == "" && r.unhashed(fs)
	}
}

// unhashed tells whether an output or a complete spool holds bytes of a file that were fetched without its hash.
func (r *run) unhashed(fs *fileState) bool {
	for _, s := range fs.segs {
		for _, d := range s.dst {
			o, done := r.ledger.output(d.task.path)
			if !done {
				o.Prefixes = d.task.seen()
			}
			complete := done || d.task.left.Load() == 0
			if complete && !slices.ContainsFunc(o.Prefixes, func(p Prefix) bool { return p.File == fs.path }) {
				return true
			}
		}
	}
	return false
}

// recount reads the runs of a kept spool, compares their checksums and counts their exponents. It refuses all if one is
// wrong: a disk that changes bytes is not to be trusted.
func (t *task) recount(ctx context.Context, k *keptSpool, runs []heldRun) error {
	if err := newCounters(t); err != nil {
		return err
	}
	places := map[int64]heldPlace{}
	t.eachTensor(func(x plan.Tensor, at int64, u *taskUnit) { places[at] = heldPlace{u, spoolBytes(x)} })
	buf := make([]byte, blockBytes)
	for _, run := range runs {
		p, ok := places[run.At]
		if !ok || run.N < 0 || run.N > p.size || run.N%2 != 0 && run.N < p.size {
			return fmt.Errorf("its record names %d bytes at %d", run.N, run.At)
		}
		sum := uint32(0)
		for done := int64(0); done < run.N; {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			b := buf[:min(int64(len(buf)), run.N-done)]
			if n, err := k.ReadAt(b, run.At+done); n < len(b) {
				return fmt.Errorf("read at %d: %w", run.At+done, readError(err))
			}
			sum = crc32.Update(sum, castagnoli, b)
			if p.unit != nil && p.unit.counter != nil {
				p.unit.counter.Add((run.At+done-p.unit.at)/2, b)
			}
			done += int64(len(b))
		}
		if sum != run.CRC {
			return fmt.Errorf("%d bytes at %d are not those that were written", run.N, run.At)
		}
	}
	return nil
}

// heldPlace is the room of one tensor in a spool.
type heldPlace struct {
	unit *taskUnit
	size int64
}

// keepSpools leaves the spools of an unfinished run to the next one, with a journal that counts on them. All stages have
// ended.
func (r *run) keepSpools() {
	for _, t := range r.tasks {
		if t.spool == nil {
			continue
		}
		err := t.keepSpool(r.Plan.Digest())
		if err == nil {
			err = t.spool.Release() // a kept one is closed by now and stays
		}
		if err != nil {
			r.Log.Warn("what arrived can't be kept", "output", t.path, "err", err)
			if err := removeSpool(spoolPath(r.store.state, t)); err != nil {
				r.Log.Warn("a spool is left behind", "output", t.path, "err", err)
			}
		}
	}
	if err := r.saveJournal(); err != nil {
		r.Log.Warn("the journal can't be kept", "err", err)
	}
}
