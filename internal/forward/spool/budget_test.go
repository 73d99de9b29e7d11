package spool

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// Spools come and go at the same time, are left or released twice, can't be opened, or are given
// up while they wait. They never hold more than the budgets of disk and memory, and release all
// of it.
func TestBudgetsHold(t *testing.T) {
	const limit = 6 << 20
	for seed := range uint64(8) {
		synctest.Test(t, func(t *testing.T) {
			room := &Room{
				Dir: world.Root(t, t.TempDir()), Keep: seed%2 == 0, InMemory: map[*spans.Output]bool{},
				Disk: NewBudget(limit), Memory: NewBudget(limit),
			}
			var held atomic.Int64
			var g sync.WaitGroup
			var outputs []*spans.Output
			for i, size := range []int64{1, 300 << 10, 900 << 10, 1 << 20, 2 << 20, 2 << 20, 5 << 20} {
				outputs = append(outputs, &spans.Output{Path: string(rune('a' + i)), Size: size})
				room.InMemory[outputs[i]] = seed%4 < 2
			}
			for i, o := range outputs {
				rng := rand.New(rand.NewPCG(seed, uint64(i)))
				g.Go(func() {
					for range 30 {
						if err := use(t, room, o, rng, &held); err != nil {
							t.Error(err)
						}
						if n := held.Load(); n > limit {
							t.Errorf("%d bytes are held, the budget has %d", n, limit)
						}
					}
				})
			}
			g.Wait()
			for name, b := range map[string]*Budget{"disk": room.Disk, "memory": room.Memory} {
				if !b.TryAcquire(limit) {
					t.Errorf("seed %d: the budget of %s was not given back", seed, name)
				}
			}
		})
	}
}

// use creates, uses, and ends a spool of one output, or fails to in a way that it may.
func use(t *testing.T, room *Room, o *spans.Output, rng *rand.Rand, held *atomic.Int64) error {
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rng.IntN(20))*time.Millisecond)
	defer cancel()
	s, err := room.New(ctx, o)
	if err == nil && s.Kept && rng.IntN(2) == 0 {
		err = s.Close()
		if rng.IntN(2) == 0 {
			err = errors.Join(err, RemoveKept(room.Dir, o))
		}
		if err != nil {
			return err
		}
		s, err = room.Open(ctx, o)
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	held.Add(o.Size)
	time.Sleep(time.Duration(rng.IntN(5)) * time.Millisecond)
	_, err = s.WriteAt([]byte{1}, o.Size-1)
	held.Add(-o.Size)
	for range 1 + rng.IntN(2) {
		if rng.IntN(2) == 0 {
			err = errors.Join(err, s.Release())
		} else {
			err = errors.Join(err, s.Close())
		}
	}
	return err
}
