package hub

import "context"

// Transfers is how many ranges of files travel at once in each direction: enough for a storage that limits each connection,
// and few enough for a thin line to keep each of them alive.
const Transfers = 16

// slots bound how many transfers run at once in one direction.
type slots chan struct{}

// slot is the right of one transfer to run. The transfer has it during a try, not while it waits for the next one. A nil slot
// belongs to a request that needs none.
type slot struct {
	of   slots
	held bool
}

// take waits for the slot, unless the transfer has it.
func (s *slot) take(ctx context.Context) error {
	if s.held {
		return nil
	}
	select {
	case s.of <- struct{}{}:
		s.held = true
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *slot) giveBack() {
	if s != nil && s.held {
		s.held = false
		<-s.of
	}
}

// lock lets one run at a time. Unlike a mutex, it can be given up with ctx.
type lock chan struct{}

func (l lock) hold(ctx context.Context, fn func() error) error {
	select {
	case l <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-l }()
	return fn()
}
