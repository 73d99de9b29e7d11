// Package fetch streams the source files of a model through their hash and scatters the bytes to
// the spools of the outputs that want them. It decides neither what an output is made of nor what
// is done: spans and ledger tell.
package fetch

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/df11-convert/df11-convert/encoder"
	"github.com/df11-convert/df11-convert/internal/forward/spool"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// A Task is an output in the making. The fetcher fills its spool and counts exponents on the way;
// whoever takes the complete task owns both.
type Task struct {
	*spans.Output
	Spool *spool.Spool
	// Counters have pass 1 of each unit, nil for one that stays in BF16 for the reason in Reasons.
	Counters []*encoder.Counter
	Reasons  []string

	open    sync.Once // spool and counters
	openErr error
	left    atomic.Int64   // bytes that have not arrived
	held    map[int64]bool // tensors that were in the spool from the beginning, by offset
}

// NewTasks makes a fresh task for every output.
func NewTasks(outputs []*spans.Output) []*Task {
	var tasks []*Task
	for _, o := range outputs {
		t := &Task{
			Output: o, Counters: make([]*encoder.Counter, len(o.Units)),
			Reasons: make([]string, len(o.Units)),
		}
		for i, u := range o.Units {
			t.Reasons[i] = u.Unholdable
		}
		t.left.Store(o.Size)
		tasks = append(tasks, t)
	}
	return tasks
}

// count makes a counter for each unit that DF11 may hold. The plan has left out those that are too
// large.
func (t *Task) count() error {
	for i, u := range t.Units {
		if t.Reasons[i] != "" {
			continue
		}
		c, err := encoder.NewCounter(u.Sizes())
		if err != nil {
			return fmt.Errorf("module %s: %w", u.Path, err)
		}
		t.Counters[i] = c
	}
	return nil
}

// add counts the exponents of bytes p at the spool offset at, which lie in the unit u; nil for
// copied tensors.
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

// Holds reports whether the tensor at a spool offset was there from the beginning.
func (t *Task) Holds(at int64) bool { return t.held[at] }

// hold notes that a tensor is in the spool from the beginning.
func (t *Task) hold(x spans.Tensor) {
	if t.held == nil {
		t.held = map[int64]bool{}
	}
	t.held[x.At] = true
	t.left.Add(-x.SpoolBytes())
}

// Unchanged is an error if a source file of the output has been written to, so that what passed the
// hash may be something else than what was converted.
func (t *Task) Unchanged(src model.Source) error {
	for _, file := range t.Files() {
		if err := src.Unchanged(file); err != nil {
			return err
		}
	}
	return nil
}
