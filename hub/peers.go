package hub

import (
	"context"
	"sync"
	"time"

	"github.com/df11-convert/df11-convert/hub/internal/wire"
)

// peers compares the downloads of one client. A storage network spreads its clients over many
// machines; some give a tenth of what others give, and a connection that is kept alive stays with
// its machine. Since a Stream delivers in order, one such connection would set the pace of all. A
// download is compared with what the others have brought since it began, so that a line that
// falters as a whole makes none of them lag.
type peers struct {
	conns int64 // downloads that may run at once

	mu      sync.Mutex
	all     int64 // bytes that all downloads have brought
	running map[*lap]context.CancelCauseFunc
	looked  time.Time // when they were compared last
}

// When a download lags.
const (
	lookEvery = 200 * time.Millisecond
	lapTime   = 600 * time.Millisecond // a connection that is new speeds up
	lagShare  = 2.5                    // below 2/5 of what the others brought on average
	// a line that gives less per connection has too few packets to compare
	minPeerRate = 128 << 10
	maxSwitches = 4 // tries of a range that may end for lagging
)

// lap is one answer on its way into a segment.
type lap struct {
	start  time.Time
	own    int64 // bytes that it has brought
	before int64 // bytes that all downloads had brought when it began
}

// begin compares a download with others until end is called, and gives it up if it lags.
func (p *peers) begin(giveUp context.CancelCauseFunc) *lap {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := &lap{start: time.Now(), before: p.all}
	p.running[l] = giveUp
	return l
}

func (p *peers) end(l *lap) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.running, l)
}

// brought counts n more bytes of a download, and gives up all that lag.
func (p *peers) brought(l *lap, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l.own, p.all = l.own+int64(n), p.all+int64(n)
	now := time.Now()
	if now.Sub(p.looked) < lookEvery || p.conns == 1 {
		return
	}
	p.looked = now
	for l, giveUp := range p.running {
		took := now.Sub(l.start)
		usual := (p.all - l.before - l.own) / (p.conns - 1)
		if took >= lapTime && usual >= int64(minPeerRate*took.Seconds()) &&
			float64(l.own) < float64(usual)/lagShare {
			giveUp(wire.ErrLagging)
		}
	}
}
