// Package fetch streams the source files of a model through their hash and scatters the bytes to the spools of the outputs
// that want them. It decides neither what an output is made of nor what is done: spans and ledger tell.
package fetch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/df11-convert/df11-convert/encoder"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/spool"
)

// A Task is an output in the making. The fetcher fills its spool and counts exponents on the way; whoever takes the complete
// task owns both.
type Task struct {
	*spans.Output
	Spool spool.Spool
	// Counters have pass 1 of each unit, nil for one that stays in BF16 for the reason in Reasons.
	Counters []*encoder.Counter
	Reasons  []string

	open    sync.Once // spool and counters
	openErr error
	left    atomic.Int64 // bytes that have not arrived

	unhashed atomic.Int64  // bytes that have not passed their file's hash, where that is a pass of its own
	hashed   chan struct{} // closed when all have; nil where they pass it as they arrive

	mu       sync.Mutex
	held     map[int64]bool  // tensors that an earlier run has left in the spool, by offset
	prefixes []ledger.Prefix // one for each source file; without a sum where some bytes came under no hash
}

// NewTasks makes a fresh task for every output.
func NewTasks(outputs []*spans.Output) []*Task {
	var tasks []*Task
	for _, o := range outputs {
		t := &Task{
			Output: o, Counters: make([]*encoder.Counter, len(o.Units)), Reasons: make([]string, len(o.Units)),
		}
		for i, u := range o.Units {
			t.Reasons[i] = u.Unholdable
		}
		t.left.Store(o.Size)
		tasks = append(tasks, t)
	}
	return tasks
}

// count makes a counter for each unit that DF11 may hold.
func (t *Task) count() error {
	for i, u := range t.Units {
		if t.Reasons[i] != "" {
			continue
		}
		c, err := encoder.NewCounter(u.Sizes())
		if unsupported, ok := errors.AsType[*encoder.UnsupportedError](err); ok {
			t.Reasons[i] = string(unsupported.Reason)
			continue
		}
		if err != nil {
			return fmt.Errorf("module %s: %w", u.Path, err)
		}
		t.Counters[i] = c
	}
	return nil
}

// add counts the exponents of bytes p at the spool offset at, which lie in the unit u; nil for copied tensors.
func (t *Task) add(u *spans.Unit, at int64, p []byte) {
	if u == nil {
		return
	}
	if c := t.Counters[slices.Index(t.Units, u)]; c != nil {
		c.Add((at-u.At)/2, p)
	}
}

// complete reports whether every byte has arrived.
func (t *Task) complete() bool { return t.left.Load() == 0 }

// holds reports whether an earlier run has left the tensor at a spool offset.
func (t *Task) holds(at int64) bool { return t.held[at] }

// bind records which prefix of a source file a tensor that has arrived belongs to; the last one of a file covers those
// before. A tensor that came under no hash, with an empty sum, leaves the output unbound to the whole file.
func (t *Task) bind(p ledger.Prefix) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.IndexFunc(t.prefixes, func(before ledger.Prefix) bool { return before.File == p.File })
	switch {
	case i < 0:
		t.prefixes = append(t.prefixes, p)
	case p.SHA256 == "" || t.prefixes[i].SHA256 != "" && t.prefixes[i].End < p.End:
		t.prefixes[i] = p
	}
}

// Unchanged is an error if a source file of the output has been written to, so that what passed the hash may be something else
// than what was converted.
func (t *Task) Unchanged(src model.Source) error {
	seen := map[int]bool{}
	for x := range t.Tensors() {
		if seen[x.File] {
			continue
		}
		seen[x.File] = true
		if err := src.Unchanged(x.File); err != nil {
			return err
		}
	}
	return nil
}

// Prefixes lists the prefixes of source files that the output is bound to, by file. It waits until the output's bytes have
// passed their files' hashes, unless ctx ends first.
func (t *Task) Prefixes(ctx context.Context) ([]ledger.Prefix, error) {
	if t.hashed != nil {
		select {
		case <-t.hashed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	bound := slices.DeleteFunc(slices.Clone(t.prefixes), func(p ledger.Prefix) bool { return p.SHA256 == "" })
	slices.SortFunc(bound, func(a, b ledger.Prefix) int { return cmp.Compare(a.File, b.File) })
	return bound, nil
}
