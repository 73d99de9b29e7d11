package hub

import (
	"context"
	"errors"
	"sync"
	"time"
)

// peers compares the downloads of one client. A storage network spreads its clients over many
// machines; some give a tenth of what others give, and a connection that is kept alive stays with
// its machine. Since a Stream delivers in order, one such connection would set the pace of all. A
// download is held against what the others have brought since it began, so that a line that falters
// as a whole makes none of them lag.
type peers struct {
	conns int // downloads that may run at once

	mu      sync.Mutex
	running map[*lap]struct{}
	ended   int64     // bytes of the downloads that have ended
	looked  time.Time // when they were compared last
}

// When a download lags.
const (
	lookEvery = 200 * time.Millisecond
	lapTime   = 600 * time.Millisecond // a connection that is new speeds up
	lagShare  = 2.5                    // below 2/5 of what the others brought on average
	// a line that gives less per connection has too few packets to compare
	minPeerRate = 128 << 10
	maxSwitches = 4 // new connections per range, for lagging
)

// errLagging ends a download that another connection will go on with.
var errLagging = errors.New("connection is far slower than the others")

// lap is one answer on its way into a segment.
type lap struct {
	seg    *segment
	giveUp context.CancelCauseFunc
	start  time.Time
	from   int   // bytes in the segment then
	all    int64 // bytes that all downloads had brought then
}

func newPeers(conns int) *peers { return &peers{conns: conns, running: map[*lap]struct{}{}} }

// begin compares a download with others until end is called. If it lags, it is ended with
// errLagging, unless giveUp is nil.
func (p *peers) begin(seg *segment, giveUp context.CancelCauseFunc) *lap {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := &lap{seg: seg, giveUp: giveUp, start: time.Now(), from: seg.filled(), all: p.all()}
	p.running[l] = struct{}{}
	return l
}

func (p *peers) end(l *lap) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.running, l)
	p.ended += l.bytes()
}

// bytes is what the download has brought.
func (l *lap) bytes() int64 { return int64(l.seg.filled() - l.from) }

// all is what all downloads have brought.
func (p *peers) all() int64 {
	n := p.ended
	for l := range p.running {
		n += l.bytes()
	}
	return n
}

// look gives up the downloads that lag. Whichever brings bytes calls it.
func (p *peers) look() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if now.Sub(p.looked) < lookEvery || p.conns == 1 {
		return
	}
	p.looked = now
	all := p.all()
	for l := range p.running {
		took, own := now.Sub(l.start), l.bytes()
		usual := (all - l.all - own) / int64(p.conns-1)
		if l.giveUp != nil && took >= lapTime && usual >= int64(minPeerRate*took.Seconds()) &&
			float64(own) < float64(usual)/lagShare {
			l.giveUp(errLagging)
			l.giveUp = nil
		}
	}
}
