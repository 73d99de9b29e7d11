package progress

import "time"

// Motion measures how fast things move from one look at the counters to the next.
type Motion struct {
	*Counters
	Work  []Work    // at the last look
	Share float64   // of all work, 0 to 1; it never falls
	Ended bool      // the stages have stopped: nothing is left to do
	Began time.Time // when the run began
	at    time.Time // of the last look
	sent  inFlight  // at the last look
	paces [nStages]pace
}

// pace measures the speed of a stage while it can work, over the last half of that time or more. A
// stage that waits for the one before it isn't slow: an upload waits for a whole file, and an
// encoder for a whole unit.
type pace struct {
	active       time.Duration // how long the stage could work so far
	from, middle mark
	last         mark          // when bytes were last done
	half         time.Duration // at least the time from from to middle
}

// mark is how many bytes of its work a stage had done after some time of working.
type mark struct {
	at   time.Duration
	done int64
}

// add counts the time since the last look, if the stage could work in it, and takes the next mark.
// Whenever the time has doubled, the older half of it is forgotten, so a slow start or an earlier
// run's work doesn't count for long.
func (p *pace) add(past time.Duration, works bool, done int64) {
	if works {
		p.active += past
	}
	now := mark{p.active, done}
	switch {
	case p.half == 0:
		*p = pace{active: p.active, from: now, middle: now, last: now, half: 10 * time.Second}
	case now.at-p.middle.at >= p.half:
		p.from, p.middle, p.half = p.middle, now, 2*p.half
	}
	if done != p.last.done {
		p.last = now
	}
}

// perSecond returns the speed, or 0 until it was measured for a second. Stages that work in bursts
// are measured up to the last one, unless nothing has moved for longer than that took.
func (p *pace) perSecond() float64 {
	until := p.last
	if past := until.at - p.from.at; p.active-until.at > past {
		until.at = p.active
	}
	if past := until.at - p.from.at; past >= time.Second {
		return float64(until.done-p.from.done) / past.Seconds()
	}
	return 0
}

// Look reads the counters. If work was lost and starts again, the motion starts again, too.
func (m *Motion) Look(now time.Time) {
	work := m.Counters.Work()
	for i, w := range work {
		if len(work) != len(m.Work) || w.Stage == Verify &&
			(w.All != m.Work[i].All || w.Done < m.Work[i].Done) {
			m.Share, m.paces = 0, [nStages]pace{}
			break
		}
	}
	if n := m.Uploaded.Load(); n != m.sent.read {
		m.sent.read, m.sent.since = n, now
	}
	m.sent.unconfirmed = min(m.unconfirmed.Load(), buffered)
	for i, w := range work {
		if w.Stage == Upload {
			w.Done = max(0, w.Done-m.sent.unconfirmed)
			if len(m.Work) == 0 {
				m.sent.before = w.Done
			}
			if w.Done <= m.sent.before {
				continue // until the first bytes are sent for sure, the speed is unknown
			}
		}
		m.paces[w.Stage].add(now.Sub(m.at), m.canWork(work, i), w.Done)
	}
	m.Work, m.Share, m.at = work, max(m.Share, m.Counters.Share()), now
}

// canWork reports whether a stage has work, as far as it's known: something to send, or more bytes
// from the stage before it than the output that isn't complete has on average.
func (m *Motion) canWork(work []Work, i int) bool {
	switch {
	case work[i].Stage == Upload:
		return m.sending.Load() > 0
	case i == 0:
		return true
	}
	return work[i-1].Done-work[i].Done > work[i].All/max(1, m.OutputFiles.Load())
}

// Elapsed returns how long the run has lasted.
func (m *Motion) Elapsed() time.Duration { return m.at.Sub(m.Began) }

// inFlight is how many bytes uploads have read, the last of them at since, how many of them may not
// be sent yet, and how many earlier runs had sent.
type inFlight struct {
	read, unconfirmed, before int64
	since                     time.Time
}

// buffered bounds what the system may have taken from uploads and not sent yet: two connections
// with 4 MiB each, Linux's largest buffer by default (tcp_wmem).
const buffered = 8 << 20

// unsent returns the bytes that are probably still to be sent of those that were read, at a speed.
func (m *Motion) unsent(speed float64) float64 {
	return max(0, float64(m.sent.unconfirmed)-speed*m.at.Sub(m.sent.since).Seconds())
}

// leftMost is the longest time left to report, in seconds. Anything slower stands still.
const leftMost = 100 * 86400

// Left estimates the time that the slowest stage needs for the rest of its work, because all of them
// work at once, and the last output is sent when the last byte has been read. It returns 0 until
// something has moved for long enough. A stage without bytes is assumed to keep up with the others,
// and an upload to go as fast as the download before it.
func (m *Motion) Left() time.Duration {
	var most, down float64
	for _, w := range m.Work {
		speed := m.paces[w.Stage].perSecond()
		rest := float64(w.All - w.Done)
		if w.Stage == Read {
			down = speed
		}
		if w.Stage == Upload {
			if speed == 0 {
				speed = down
			}
			if speed > 0 {
				rest += m.unsent(speed)
				last := float64(w.All) / float64(max(1, m.OutputFiles.Load()))
				most = max(most+min(rest, last)/speed, rest/speed)
			}
		} else if speed > 0 {
			if w.Stage != Read { // it may wait for one of the ranges that arrive side by side
				speed = max(speed, m.meters[w.Stage].perSecond())
			}
			most = max(most, rest/speed)
		}
	}
	if m.Ended || most > leftMost {
		return 0
	}
	return time.Duration(most * float64(time.Second))
}
