package sha256pair

import (
	"hash"
	"sync"
)

// Lockstep lets goroutines that hash messages of their own advance in pairs: who comes first waits, and the next to come
// hashes for both. The zero value works; with nil everybody hashes alone.
//
// A goroutine is a member from Join to Leave. In between it keeps coming to Write, and nothing that it waits for there
// may depend on another member's Write.
type Lockstep struct {
	mu      sync.Mutex
	members int
	waiting *call // at most one: the next to come takes it along
}

// call is one call of Write.
type call struct {
	h    hash.Hash
	p    []byte      // what is not hashed
	back chan []byte // gets what is left when nobody works on it any more
}

// Join makes the caller a member.
func (l *Lockstep) Join() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.members++
}

// Leave ends what Join began. Who is then the only member goes on alone.
func (l *Lockstep) Leave() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.members--
	if c := l.waiting; c != nil && l.members < 2 {
		l.waiting = nil
		c.back <- c.p
	}
}

// Write adds p to h, which comes from sha256.New. Only members call it.
func (l *Lockstep) Write(h hash.Hash, p []byte) {
	if l == nil || !usable {
		h.Write(p)
		return
	}
	for len(p) >= minBytes {
		own, other := l.meet(h, p)
		switch {
		case other != nil:
			n := min(len(p), len(other.p))
			Write(h, other.h, p[:n], other.p[:n])
			p, other.p = p[n:], other.p[n:]
			l.handBack(other)
		case own != nil:
			p = <-own.back
		default:
			h.Write(p)
			return
		}
	}
	h.Write(p)
}

// meet takes along the one who is waiting, or leaves p to the next to come. Both are nil for the only member.
func (l *Lockstep) meet(h hash.Hash, p []byte) (own, other *call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.waiting != nil:
		other, l.waiting = l.waiting, nil
	case l.members > 1:
		own = &call{h, p, make(chan []byte, 1)}
		l.waiting = own
	}
	return own, other
}

// handBack lets a call go on waiting for what it has left, or its goroutine go on.
func (l *Lockstep) handBack(c *call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(c.p) < minBytes || l.waiting != nil || l.members < 2 {
		c.back <- c.p
		return
	}
	l.waiting = c
}
