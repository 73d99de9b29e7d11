package spool

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/df11-convert/df11-convert/internal/spans"
)

// Spools come and go at the same time, are left or released twice, can't be created, or are given
// up while they wait. They never hold more than the budgets of disk and memory, and release all
// of it.
func TestBudgetsHold(t *testing.T) {
	const limit = 6 << 20
	for seed := range uint64(8) {
		synctest.Test(t, func(t *testing.T) {
			gone := filepath.Join(t.TempDir(), "gone")
			must(t, os.Mkdir(gone, 0o700))
			h := &household{
				t: t, limit: limit, gone: open(t, gone),
				room: Room{
					Dir: open(t, t.TempDir()), Keep: seed%2 == 0, InMemory: map[*spans.Output]bool{},
					Disk: NewBudget(limit), Memory: NewBudget(limit),
				},
			}
			// which keeps an open folder
			if err := os.Remove(gone); err != nil && runtime.GOOS != "windows" {
				t.Fatal(err)
			}
			for i, size := range []int64{1, 300 << 10, 900 << 10, 1 << 20, 2 << 20, 2 << 20, 5 << 20} {
				o := &spans.Output{Path: string(rune('a' + i)), Size: size}
				h.outputs, h.room.InMemory[o] = append(h.outputs, o), seed%4 < 2
			}
			var g sync.WaitGroup
			for i := range h.outputs {
				rng := rand.New(rand.NewPCG(seed, uint64(i)))
				g.Go(func() {
					for range 30 {
						h.spool(h.outputs[i], rng)
					}
				})
			}
			g.Wait()
			for name, b := range map[string]*Budget{"disk": h.room.Disk, "memory": h.room.Memory} {
				if !b.TryAcquire(limit) {
					t.Errorf("seed %d: the budget of %s was not given back", seed, name)
				}
			}
		})
	}
}

// open opens a folder for the time of a test.
func open(t *testing.T, dir string) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(dir)
	must(t, err)
	t.Cleanup(func() { root.Close() })
	return root
}

// household is a room that counts its spools.
type household struct {
	t       *testing.T
	limit   int64
	room    Room
	gone    *os.Root // a folder that was removed
	outputs []*spans.Output
	live    [2]atomic.Int64 // bytes of spools on disk and in memory
}

// spool creates, uses, and ends a spool of one output, or fails to.
func (h *household) spool(o *spans.Output, rng *rand.Rand) {
	ctx, cancel := context.WithTimeout(h.t.Context(), time.Duration(rng.IntN(20))*time.Millisecond)
	defer cancel()
	room, where := &h.room, &h.live[0]
	if room.InMemory[o] {
		where = &h.live[1]
	} else if rng.IntN(4) == 0 {
		room = &Room{Dir: h.gone, Disk: room.Disk, Keep: room.Keep}
	}
	s, err := room.New(ctx, o)
	if err == nil && s.Kept && rng.IntN(2) == 0 {
		if err := s.Leave(); err != nil {
			h.t.Error(err)
		}
		if rng.IntN(2) == 0 {
			_ = RemoveKept(room.Dir, o)
		}
		if s, err = room.Open(ctx, o); err != nil {
			return // the folder is gone, or others took the space
		}
	}
	if err != nil {
		if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, os.ErrNotExist) {
			h.t.Error(err)
		}
		return
	}
	where.Add(o.Size)
	h.check(where)
	time.Sleep(time.Duration(rng.IntN(5)) * time.Millisecond)
	if n, err := s.WriteAt([]byte{1}, o.Size-1); n != 1 || err != nil {
		h.t.Error(n, err)
	}
	where.Add(-o.Size)
	for range 1 + rng.IntN(2) {
		if rng.IntN(2) == 0 {
			err = errors.Join(err, s.Release())
		} else {
			err = errors.Join(err, s.Leave())
		}
	}
	if err != nil {
		h.t.Error(err)
	}
}

// check counts what is held now.
func (h *household) check(where *atomic.Int64) {
	if held := where.Load(); held > h.limit {
		h.t.Errorf("%d bytes are held, the budget has %d", held, h.limit)
	}
}
