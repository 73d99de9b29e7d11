package hub

import (
	"context"
	"sync"
	"time"
)

// peers compares the downloads of one client. A storage network spreads its clients over many
// machines. Some are eight times slower than others, and a connection that's kept alive stays with
// its machine: https://github.com/huggingface/xet-core/issues/821. A Stream delivers in order, so
// one slow connection would slow all. A download is compared with what the others brought since it
// began. So if the whole network slows down, none of them lags. If few others are left, it's
// compared with the rate they had.
type peers struct {
	conns int64 // downloads that may run at once

	mu      sync.Mutex
	all     int64         // bytes that all downloads brought
	ended   int64         // bytes of downloads that ended
	lasted  time.Duration // their total time
	running map[*lap]context.CancelCauseFunc
	looked  time.Time // the last comparison
}

// When a download lags.
const (
	lookEvery = 200 * time.Millisecond
	lapTime   = 600 * time.Millisecond // a new connection speeds up
	lagShare  = 2.5                    // below 2/5 of the others' average
	// slower connections bring too few packets to compare
	minPeerRate = 128 << 10
	maxSwitches = 4 // tries of a range that may end for lagging
	// of downloads that ended; after that long, their rate is known
	hadTime = time.Minute
)

// A lap is one answer on its way into a segment.
type lap struct {
	start  time.Time
	own    int64 // bytes it brought
	before int64 // bytes that all downloads had brought when it began
}

// begin compares a download with the others until end is called, and calls giveUp if it lags.
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
	p.ended, p.lasted = p.ended+l.own, p.lasted+time.Since(l.start)
	if p.lasted > hadTime { // older rates count less
		p.ended, p.lasted = p.ended/2, p.lasted/2
	}
}

// brought counts n more bytes of a download, and gives up every download that lags.
func (p *peers) brought(l *lap, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l.own, p.all = l.own+int64(n), p.all+int64(n)
	now := time.Now()
	if now.Sub(p.looked) < lookEvery || p.conns == 1 {
		return
	}
	p.looked = now
	few := int64(len(p.running)) <= p.conns/2 && p.lasted > 0
	for l, giveUp := range p.running {
		took := now.Sub(l.start)
		usual := (p.all - l.before - l.own) / (p.conns - 1)
		if few {
			usual = max(usual, int64(float64(p.ended)*took.Seconds()/p.lasted.Seconds()))
		}
		if took >= lapTime && usual >= int64(minPeerRate*took.Seconds()) &&
			float64(l.own) < float64(usual)/lagShare {
			giveUp(errLagging)
		}
	}
}
