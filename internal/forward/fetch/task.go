// Package fetch streams the source files of a model through their hash and scatters the bytes to
// the spools of the outputs that need them. Package spans says what an output is made of, and the
// ledger says what is done.
package fetch

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/df11-convert/df11-convert/encoder"
	"github.com/df11-convert/df11-convert/internal/forward/spool"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// A Task is an output in progress. The fetcher fills its spool and counts exponents. Once the task
// is complete, both belong to its receiver.
type Task struct {
	*spans.Output
	Spool *spool.Spool
	// Counters have pass 1 of each unit. If Reasons says why a unit stays in BF16, its counter is
	// nil.
	Counters []*encoder.Counter
	Reasons  []string

	open    sync.Once // spool and counters
	openErr error
	left    atomic.Int64   // bytes that haven't arrived yet
	held    map[int64]bool // tensors that were in the spool from the start, by offset
}

// NewTasks returns a new task for every output.
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

// count creates a counter for each unit that DF11 may hold. The plan has excluded units that are
// too large.
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

// add counts the exponents in p, the bytes of unit u at spool offset at. For copied tensors u is
// nil, and add does nothing.
func (t *Task) add(u *spans.Unit, at int64, p []byte) {
	if u == nil {
		return
	}
	if c := t.Counters[u.Index]; c != nil {
		c.Add((at-u.At)/2, p)
	}
}

// complete reports whether every byte has arrived.
func (t *Task) complete() bool { return t.left.Load() == 0 }

// Holds reports whether the tensor at a spool offset was there from the start.
func (t *Task) Holds(at int64) bool { return t.held[at] }

// hold notes that a tensor is in the spool from the start.
func (t *Task) hold(x spans.Tensor) {
	if t.held == nil {
		t.held = map[int64]bool{}
	}
	t.held[x.At] = true
	t.left.Add(-x.SpoolBytes())
}

// Unchanged returns an error if a source file of the output was written to: then the bytes that
// were hashed may differ from those that were converted.
func (t *Task) Unchanged(src model.Source) error {
	for _, file := range t.Files() {
		if err := src.Unchanged(file); err != nil {
			return err
		}
	}
	return nil
}
