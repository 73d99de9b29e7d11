package hub

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// slots bound how many transfers run at once in one direction. Their number adapts to the line: it is doubled while that
// raises the rate of all transfers together, and taken back where it does not. A fixed number is least = most.
type slots struct {
	least, most int
	moved       *atomic.Int64 // file bytes of all transfers so far
	free        chan struct{} // cap is most; waiters are served in turn

	mu      sync.Mutex
	limit   int
	surplus int // slots that go when they are given back
	running int
	window  window

	former   int     // limit before the latest growth, while that is on trial; else 0
	before   float64 // and the rate then
	settling bool    // connections are still being made
	restTo   time.Time
}

// window is the time over which a rate is measured.
type window struct {
	begun time.Time
	from  int64         // bytes moved before
	busy  time.Duration // of all slots together
	at    time.Time     // up to which busy counts
}

// How the number of transfers adapts.
const (
	fewSlots, manySlots = 8, 32

	rateWindow   = time.Second
	fullShare    = 0.75        // of the slots' time that must have been used; else the line was not the bound
	leastGain    = 0.25        // of what was added must arrive
	leastPerSlot = 16 << 10    // bytes per second; a thinner line is not divided further
	triesGrowth  = time.Minute // after a growth that brought nothing
)

// newTransferSlots makes the slots for the transfers of one direction. Downloads need no more of them than there is memory for.
func newTransferSlots(opt *Options, moved *atomic.Int64) *slots {
	if n := opt.Connections; n > 0 {
		return newSlots(n, n, moved)
	}
	most := int(min(manySlots, max(1, opt.BufferBytes/opt.RangeBytes)))
	return newSlots(min(fewSlots, most), most, moved)
}

func newSlots(least, most int, moved *atomic.Int64) *slots {
	s := &slots{least: least, most: most, moved: moved, free: make(chan struct{}, most)}
	s.resize(least)
	return s
}

// take waits for a slot.
func (s *slots) take(ctx context.Context) error {
	select {
	case <-s.free:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.window.begun.IsZero() {
		s.window = window{begun: now, at: now, from: s.moved.Load()}
	}
	s.count(now, 1)
	return nil
}

// release gives a slot back, and looks whether their number is right.
func (s *slots) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.count(now, -1)
	if s.surplus > 0 {
		s.surplus--
	} else {
		s.free <- struct{}{}
	}
	if now.Sub(s.window.begun) >= rateWindow {
		s.judge(now)
	}
}

// count notes that the number of running transfers changes.
func (s *slots) count(now time.Time, change int) {
	s.window.busy += now.Sub(s.window.at) * time.Duration(s.running)
	s.window.at = now
	s.running += change
}

// judge ends a window. One in which slots were free says nothing of the line.
func (s *slots) judge(now time.Time) {
	w, took, moved := s.window, now.Sub(s.window.begun).Seconds(), s.moved.Load()
	s.window = window{begun: now, at: now, from: moved}
	rate := float64(moved-w.from) / took
	switch {
	case s.settling:
		s.settling = false
	case w.busy.Seconds() < fullShare*took*float64(s.limit):
	case s.former > 0 && rate < s.before*(1+leastGain*float64(s.limit-s.former)/float64(s.former)):
		s.resize(s.former)
		s.former, s.restTo = 0, now.Add(triesGrowth)
	case s.limit < s.most && !now.Before(s.restTo) && rate >= leastPerSlot*float64(s.limit):
		s.former, s.before, s.settling = s.limit, rate, true
		s.resize(min(2*s.limit, s.most))
	default:
		s.former = 0
	}
}

// throttled halves the number of slots, since the other end has refused a transfer.
func (s *slots) throttled() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.restTo = now.Add(triesGrowth)
	if s.settling && s.former == 0 {
		return // it has just halved them: several were refused at once
	}
	s.count(now, 0)
	s.window = window{begun: now, at: now, from: s.moved.Load()}
	s.former, s.settling = 0, true
	s.resize(max(s.least, s.limit/2))
}

// resize sets the number of slots. Those that are in use stay so until they are given back.
func (s *slots) resize(n int) {
	for ; s.limit < n; s.limit++ {
		if s.surplus > 0 {
			s.surplus--
		} else {
			s.free <- struct{}{}
		}
	}
	for ; s.limit > n; s.limit-- {
		select {
		case <-s.free:
		default:
			s.surplus++
		}
	}
}

// size is how many slots there are now.
func (s *slots) size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.limit
}

// slot is the right of one transfer to run. It has it while a try is under way, not while it waits for the next one. A nil
// slot is that of a request which needs none.
type slot struct {
	of   *slots
	held bool
}

// take waits for the slot, unless the transfer has it.
func (s *slot) take(ctx context.Context) error {
	if s.held {
		return nil
	}
	err := s.of.take(ctx)
	s.held = err == nil
	return err
}

func (s *slot) giveBack() {
	if s != nil && s.held {
		s.held = false
		s.of.release()
	}
}

// lock lets one run at a time. Unlike a mutex, it can be given up with ctx.
type lock chan struct{}

func (l lock) hold(ctx context.Context, fn func() error) error {
	select {
	case l <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-l }()
	return fn()
}
