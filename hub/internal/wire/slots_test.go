package wire

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/semaphore"
)

// TestTransfersNeverExceedTheirSlots: whatever comes in between, there are never more transfers
// than slots, and none is lost.
func TestTransfersNeverExceedTheirSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 4
		s := semaphore.NewWeighted(n)
		var running atomic.Int64
		var all sync.WaitGroup
		for i := range uint64(40) {
			rnd := rand.New(rand.NewPCG(1, i))
			all.Go(func() {
				for range 50 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rnd.IntN(2000))*time.Millisecond)
					mine := &Slot{Of: s}
					err := mine.Take(ctx)
					if err == nil {
						if err = mine.Take(ctx); running.Add(1) > n { // it has the slot already
							t.Error("more transfers than slots")
						}
						time.Sleep(time.Duration(rnd.IntN(300)) * time.Millisecond)
						running.Add(-1)
					}
					if err != nil && !errors.Is(err, context.DeadlineExceeded) {
						t.Error(err)
					}
					mine.giveBack()
					mine.giveBack()
					cancel()
				}
			})
		}
		all.Wait()
		if !s.TryAcquire(n) {
			t.Error("a slot is lost")
		}
	})
}
