package sha256pair

import (
	"context"
	"crypto/sha256"
	"errors"
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
		l.Write(t.Context(), h, message[at:at+n])
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

// TestLockstepEnds: a member that waits for another one ends with its context, and the others go on.
func TestLockstepEnds(t *testing.T) {
	var l Lockstep
	l.Join()
	l.Join()
	defer l.Leave()
	stop := errors.New("stopped by the test")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stop)
	if err := l.Write(ctx, sha256.New(), make([]byte, 1<<20)); usable && !errors.Is(err, stop) {
		t.Errorf("the wait ends with %v", err)
	}
	l.Leave()
	advance(t, &l, 1)
}
