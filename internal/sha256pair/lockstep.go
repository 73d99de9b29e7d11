package sha256pair

import (
	"context"
	"hash"
	"sync"
)

// Lockstep lets goroutines that hash messages of their own advance in pairs: the first goroutine to call Write waits, and
// the second hashes for both. The zero value works; with a nil Lockstep every goroutine hashes alone.
//
// A goroutine is a member from Join to Leave. Between two calls of Write a member must not wait for anything that depends
// on another member's Write.
type Lockstep struct {
	mu      sync.Mutex
	members int
	waiting *call // at most one: the next goroutine hashes for it
}

// call is one call of Write.
type call struct {
	h    hash.Hash
	p    []byte      // the bytes that are not hashed yet
	back chan []byte // gets the rest of p when nobody works on it any more
	ends bool        // the caller waits for no second partner
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

// Leave ends the membership. The last member that remains goes on alone.
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

// Write adds p to h, which comes from sha256.New. Only members call it. Once ctx ends it does not wait any more; h then is of
// no use.
func (l *Lockstep) Write(ctx context.Context, h hash.Hash, p []byte) error {
	if l == nil || !usable {
		h.Write(p)
		return nil
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
			select {
			case p = <-own.back:
			case <-ctx.Done():
				l.withdraw(own)
				return context.Cause(ctx)
			}
		default:
			h.Write(p)
			return nil
		}
	}
	h.Write(p)
	return nil
}

// withdraw ends the wait of a call. If another goroutine hashes for it just now, it waits until that is done.
func (l *Lockstep) withdraw(c *call) {
	l.mu.Lock()
	idle := l.waiting == c
	if c.ends = true; idle {
		l.waiting = nil
	}
	l.mu.Unlock()
	if !idle {
		<-c.back
	}
}

// meet takes the waiting call as other, or makes own, which waits for the next goroutine. Both are nil for the only member.
func (l *Lockstep) meet(h hash.Hash, p []byte) (own, other *call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.waiting != nil:
		other, l.waiting = l.waiting, nil
	case l.members > 1:
		own = &call{h: h, p: p, back: make(chan []byte, 1)}
		l.waiting = own
	}
	return own, other
}

// handBack lets a call wait again if much of it is left, and its goroutine go on otherwise.
func (l *Lockstep) handBack(c *call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.ends || len(c.p) < minBytes || l.waiting != nil || l.members < 2 {
		c.back <- c.p
		return
	}
	l.waiting = c
}
