package wire

import "context"

// Transfers is how many ranges of files travel at once in each direction: enough for a storage that limits each connection,
// and few enough for a thin line to keep each of them alive.
const Transfers = 16

// Slots bound how many transfers run at once in one direction.
type Slots chan struct{}

// Slot is the right of one transfer to run. The transfer has it during a try, not while it waits for the next one. A nil slot
// belongs to a request that needs none.
type Slot struct {
	Of   Slots
	held bool
}

// Take waits for the slot, unless the transfer has it.
func (s *Slot) Take(ctx context.Context) error {
	if s.held {
		return nil
	}
	select {
	case s.Of <- struct{}{}:
		s.held = true
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *Slot) giveBack() {
	if s != nil && s.held {
		s.held = false
		<-s.Of
	}
}

// Lock lets one run at a time. Unlike a mutex, it can be given up with ctx.
type Lock chan struct{}

// Hold runs fn once no other run is under way. It returns the cause of ctx if that ends first.
func (l Lock) Hold(ctx context.Context, fn func() error) error {
	select {
	case l <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-l }()
	return fn()
}
