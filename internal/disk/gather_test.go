package disk

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
)

// target is a file in memory that records how it was written.
type target struct {
	mu     sync.Mutex
	b      []byte
	writes []span
	err    error
	atOnce atomic.Bool // two writes ran at the same time
}

func (f *target) WriteAt(p []byte, off int64) (int, error) {
	if !f.mu.TryLock() {
		f.atOnce.Store(true)
		f.mu.Lock()
	}
	defer f.mu.Unlock()
	if f.err != nil {
		return 0, f.err
	}
	f.writes = append(f.writes, span{int(off), int(off) + len(p)})
	return copy(f.b[off:], p), nil
}

func random(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// pieces cuts [0, n) into random pieces in random order, and leaves some out.
func pieces(rng *rand.Rand, n, most int, leave float64) []span {
	var all []span
	for at := 0; at < n; {
		end := min(n, at+1+rng.IntN(most))
		if rng.Float64() >= leave {
			all = append(all, span{at, end})
		}
		at = end
	}
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// TestAnyOrder writes random pieces from several goroutines. Each byte arrives once, no two writes
// run at the same time, and the other bytes don't change.
func TestAnyOrder(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 0))
		n := 1 + rng.IntN(5*windowBytes)
		data := random(rng, n)
		for _, leave := range []float64{0, 0.2} {
			f := &target{b: make([]byte, n)}
			g := NewGather(f)
			want, parts := make([]byte, n), pieces(rng, n, 1+rng.IntN(2*windowBytes), leave)
			var wg sync.WaitGroup
			for w := range 3 {
				wg.Go(func() {
					for i := w; i < len(parts); i += 3 {
						p := data[parts[i].from:parts[i].end]
						if m, err := g.WriteAt(p, int64(parts[i].from)); m != len(p) || err != nil {
							t.Errorf("wrote %d of %d: %v", m, len(p), err)
						}
					}
				})
			}
			wg.Wait()
			if err := g.Flush(); err != nil {
				t.Fatal(err)
			}
			total := 0
			for _, p := range parts {
				total += copy(want[p.from:p.end], data[p.from:p.end])
			}
			for _, w := range f.writes {
				total -= w.end - w.from
			}
			if f.atOnce.Load() {
				t.Fatalf("seed %d: two writes at a time", seed)
			}
			if !bytes.Equal(f.b, want) || total != 0 || len(g.open) != 0 {
				t.Fatalf("seed %d: bytes differ, or %d are left over, or %d windows", seed, total, len(g.open))
			}
		}
	}
}

func TestErrors(t *testing.T) {
	broken := errors.New("broken")
	g := NewGather(&target{err: broken})
	if _, err := g.WriteAt(make([]byte, windowBytes), windowBytes); !errors.Is(err, broken) {
		t.Errorf("whole window: %v", err)
	}
	if n, err := g.WriteAt(make([]byte, windowBytes+1), windowBytes-1); !errors.Is(err, broken) || n > 1 {
		t.Errorf("window and a byte: %d, %v", n, err)
	}
	if _, err := g.WriteAt(make([]byte, 10), 3*windowBytes); err != nil {
		t.Errorf("held: %v", err)
	}
	if err := g.Flush(); !errors.Is(err, broken) {
		t.Errorf("flush: %v", err)
	}
}
