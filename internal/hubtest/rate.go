package hubtest

import (
	"sync"
	"time"
)

// A link is a wire of limited speed that all transfers in one direction share. A nil link is
// infinitely fast.
type link struct {
	perSecond float64
	mu        sync.Mutex
	free      time.Time // when everything promised so far has passed
}

// links are the two directions of a server's network.
type links struct{ down, up *link }

func newLink(bytesPerSecond int64) *link {
	if bytesPerSecond <= 0 {
		return nil
	}
	return &link{perSecond: float64(bytesPerSecond)}
}

// clip shortens p to what passes in about 20 ms, so that several transfers share the wire evenly.
func (l *link) clip(p []byte) []byte {
	if l == nil {
		return p
	}
	return p[:min(len(p), max(512, int(l.perSecond/50)))]
}

// wait returns when n more bytes have passed, or when done is closed.
func (l *link) wait(done <-chan struct{}, n int) {
	if l == nil || n <= 0 {
		return
	}
	l.mu.Lock()
	now := time.Now()
	if l.free.Before(now) {
		l.free = now
	}
	l.free = l.free.Add(time.Duration(float64(n) / l.perSecond * float64(time.Second)))
	pause := l.free.Sub(now)
	l.mu.Unlock()
	sleep(done, pause)
}

// sleep waits for d or until done is closed, and reports whether it waited for all of d.
func sleep(done <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-done:
		return false
	}
}
