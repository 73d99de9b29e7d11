package spool

import (
	"context"
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
	return r.charged(ctx, o, func() (*Spool, error) {
		switch {
		case r.InMemory[o]:
			return newMemory(o.Size)
		case r.Keep:
			return createKept(r.Dir, o)
		}
		return NewTemp(r.Dir)
	})
}

// Open opens the kept spool of an output to continue with it.
func (r *Room) Open(ctx context.Context, o *spans.Output) (*Spool, error) {
	return r.charged(ctx, o, func() (*Spool, error) { return openKept(r.Dir, o, 0) })
}

// charged makes a spool that takes the budget as long as it exists.
func (r *Room) charged(ctx context.Context, o *spans.Output,
	begin func() (*Spool, error)) (*Spool, error) {
	budget := r.Disk
	if r.InMemory[o] {
		budget = r.Memory
	}
	if err := budget.Acquire(ctx, o.Size); err != nil {
		return nil, fmt.Errorf("spool for %s: %w", o.Path, err)
	}
	s, err := begin()
	if err != nil {
		budget.Release(o.Size)
		return nil, err
	}
	end := s.end
	s.end = func(remove bool) error {
		defer budget.Release(o.Size)
		return end(remove)
	}
	return s, nil
}
