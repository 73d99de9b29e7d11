package hub

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// peers compares the downloads of one client. A storage network spreads its clients over many machines; some give a tenth
// of what others give, and a connection that is kept alive stays with its machine. Since a Stream delivers in order, one
// such connection would set the pace of all. All downloads are measured over the same ticks, so that a line that falters
// as a whole makes none of them lag.
type peers struct {
	conns int // downloads that may run at once

	mu      sync.Mutex
	running map[*lap]struct{}
	ended   []float64   // bytes per second of the downloads that ended last, newest last
	timer   *time.Timer // of the next tick; runs while a download does
	ticked  time.Time
}

// When a download lags.
const (
	lapTick     = 200 * time.Millisecond
	lagShare    = 4         // below 1/4 of the upper quartile
	minPeerRate = 256 << 10 // a line that gives less per connection has too few packets in a tick to compare
	minSample   = 256 << 10 // a shorter answer tells more about latency than about rate
	maxSwitches = 4         // new connections per range, for lagging
)

// errLagging ends a download that another connection will go on with.
var errLagging = errors.New("connection is far slower than the others")

// lap measures one answer on its way into a segment.
type lap struct {
	seg    *segment
	giveUp context.CancelCauseFunc
	start  time.Time
	from   int     // bytes in the segment then
	had    int     // bytes in the segment at the last tick
	ticks  int     // since the start; the first one measures only a part
	rate   float64 // bytes per second of the last tick
	before float64 // and of the one before
}

func newPeers(conns int) *peers { return &peers{conns: conns, running: map[*lap]struct{}{}} }

// begin measures a download until end is called. If it lags, it is ended with errLagging; with a nil giveUp it is only
// measured.
func (p *peers) begin(seg *segment, giveUp context.CancelCauseFunc) *lap {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := seg.filled()
	l := &lap{seg: seg, giveUp: giveUp, start: time.Now(), from: n, had: n}
	if len(p.running) == 0 {
		p.ticked = l.start
		p.timer = time.AfterFunc(lapTick, p.tick)
	}
	p.running[l] = struct{}{}
	return l
}

// end keeps the rate of a complete download for comparison.
func (p *peers) end(l *lap, complete bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if delete(p.running, l); len(p.running) == 0 {
		p.timer.Stop()
	}
	n, took := l.seg.filled()-l.from, max(time.Since(l.start), time.Microsecond)
	if complete && n >= minSample {
		p.ended = append(p.ended, float64(n)/took.Seconds())
		p.ended = p.ended[max(0, len(p.ended)-p.conns):]
	}
}

// tick measures all downloads, then gives up those that lag.
func (p *peers) tick() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if len(p.running) == 0 || now.Sub(p.ticked) < lapTick/2 {
		return // the last one ended while the timer fired; if another has begun, that one has its own timer
	}
	for l := range p.running {
		l.measure(now.Sub(p.ticked))
	}
	usual := p.upperQuartile()
	for l := range p.running {
		if l.giveUp != nil && l.lags(usual) {
			l.giveUp(errLagging)
			l.giveUp = nil
		}
	}
	p.ticked = now
	p.timer.Reset(lapTick)
}

func (l *lap) measure(tick time.Duration) {
	n := l.seg.filled()
	l.before, l.rate = l.rate, float64(n-l.had)/tick.Seconds()
	l.had = n
	l.ticks++
}

// lags judges two whole ticks: far slower than usual, not speeding up as a new connection does, and with so much left that
// another connection may save time.
func (l *lap) lags(usual float64) bool {
	best := max(l.rate, l.before)
	left := float64(len(l.seg.space()))
	return l.ticks > 2 && usual >= minPeerRate && best < usual/lagShare && l.rate <= 2*l.before && left > best*2*lapTick.Seconds()
}

// upperQuartile is over one rate for each connection: what the running ones gave in the last tick, and for those that idle
// or have just begun, what came last over connections. It is 0 with nothing to compare.
func (p *peers) upperQuartile() float64 {
	var rates []float64
	for l := range p.running {
		if l.ticks > 1 {
			rates = append(rates, l.rate)
		}
	}
	others := min(max(0, p.conns-len(rates)), len(p.ended))
	rates = append(rates, p.ended[len(p.ended)-others:]...)
	if len(rates) < 2 {
		return 0
	}
	slices.Sort(rates)
	return rates[len(rates)*3/4]
}
