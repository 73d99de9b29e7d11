package sha256pair

import (
	"crypto/sha256"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
)

// TestLockstep lets goroutines hash messages of different lengths in steps of any length.
func TestLockstep(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, procs := range []int{1, 2, 4} {
		runtime.GOMAXPROCS(procs)
		for _, n := range []int{1, 2, 3, 6} {
			var l Lockstep
			var wg sync.WaitGroup
			for i := range n {
				l.Join()
				wg.Go(func() {
					defer l.Leave()
					advance(t, &l, uint64(i))
				})
			}
			wg.Wait()
			if l.members != 0 || l.waiting != nil {
				t.Errorf("%d processors: %d members at the end", procs, l.members)
			}
		}
	}
}

func advance(t *testing.T, l *Lockstep, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0))
	message, h := data(seed, rng.IntN(1<<20)), sha256.New()
	for at := 0; at < len(message); {
		n := min(len(message)-at, rng.IntN(1<<(8+rng.IntN(12))))
		l.Write(h, message[at:at+n])
		at += n
	}
	same(t, h, message)
}

// TestLockstepNone hashes without any partner.
func TestLockstepNone(t *testing.T) {
	var l *Lockstep
	l.Join()
	defer l.Leave()
	advance(t, l, 1)
}
