package wire

import (
	"context"
	"errors"
	"testing"

	"golang.org/x/sync/semaphore"
)

// TestASlotIsTakenOnce checks that transfers wait their turn, and that a canceled wait returns its cause.
func TestASlotIsTakenOnce(t *testing.T) {
	places := semaphore.NewWeighted(2)
	mine, other, none := &Slot{Of: places}, &Slot{Of: places}, (*Slot)(nil)
	for _, s := range []*Slot{mine, mine, other, mine} {
		if err := s.Take(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	cause := errors.New("stop it")
	ctx, stop := context.WithCancelCause(t.Context())
	stop(cause)
	late := &Slot{Of: places}
	if err := late.Take(ctx); !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
	for _, s := range []*Slot{late, mine, mine, none} {
		s.giveBack()
	}
	if !places.TryAcquire(1) || places.TryAcquire(1) {
		t.Error("other than one slot is free")
	}
}
