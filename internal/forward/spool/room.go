package spool

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/df11-convert/df11-convert/internal/spans"
)

// Room is what all spools of a run share: a folder, and budgets of disk and memory. InMemory has
// the outputs whose spools are in memory. With Keep, spool files outlive the process.
type Room struct {
	Dir          *os.Root
	Disk, Memory *Budget
	InMemory     map[*spans.Output]bool
	Keep         bool
}

// New returns the spool of an output. It waits while the budget is used up. Release of the spool
// frees the budget.
func (r *Room) New(ctx context.Context, o *spans.Output) (*Spool, error) {
	if err := r.budget(o).Acquire(ctx, o.Size); err != nil {
		return nil, fmt.Errorf("spool for %s: %w", o.Path, err)
	}
	s, err := r.make(o)
	if err != nil {
		r.budget(o).Release(o.Size)
		return nil, err
	}
	return r.charged(s, o), nil
}

func (r *Room) make(o *spans.Output) (*Spool, error) {
	switch {
	case r.InMemory[o]:
		return newMemory(o.Size)
	case r.Keep:
		return createKept(r.Dir, o)
	}
	return NewTemp(r.Dir)
}

func (r *Room) budget(o *spans.Output) *Budget {
	if r.InMemory[o] {
		return r.Memory
	}
	return r.Disk
}

// Open opens the kept spool of an output to continue with it, if the disk budget has space for it
// now.
func (r *Room) Open(o *spans.Output) (*Spool, error) {
	if r.InMemory[o] || !r.Disk.TryAcquire(o.Size) {
		return nil, errors.New("the disk budget has no space for it")
	}
	s, err := openKept(r.Dir, o, 0)
	if err != nil {
		r.Disk.Release(o.Size)
		return nil, err
	}
	return r.charged(s, o), nil
}

// charged makes a spool release its budget when it ends.
func (r *Room) charged(s *Spool, o *spans.Output) *Spool {
	end := s.end
	s.end = func(remove bool) error {
		defer r.budget(o).Release(o.Size)
		return end(remove)
	}
	return s
}
