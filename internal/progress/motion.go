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
	paces [nStages]pace
}

// pace measures the speed of a stage over the last half of the time, or more, since the stage began.
// The last stages begin later than the first ones.
type pace struct {
	from, middle mark
	half         time.Duration // at least the time from from to middle
}

// mark is how many bytes of its work a stage had done at some time.
type mark struct {
	at   time.Time
	done int64
}

// add takes the next mark. Whenever the time has doubled, the older half of it is forgotten, so a
// slow start or an earlier run's work doesn't count for long.
func (p *pace) add(now mark) {
	switch {
	case now.done == 0:
	case p.from.at.IsZero():
		*p = pace{now, now, 10 * time.Second}
	case now.at.Sub(p.middle.at) >= p.half:
		*p = pace{p.middle, now, 2 * p.half}
	}
}

// perSecond returns the speed up to now, or 0 until it was measured for a second.
func (p *pace) perSecond(now mark) float64 {
	if past := now.at.Sub(p.from.at); !p.from.at.IsZero() && past >= time.Second {
		return float64(now.done-p.from.done) / past.Seconds()
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
	for _, w := range work {
		m.paces[w.Stage].add(mark{now, w.Done})
	}
	m.Work, m.Share, m.at = work, max(m.Share, m.Counters.Share()), now
}

// Elapsed returns how long the run has lasted.
func (m *Motion) Elapsed() time.Duration { return m.at.Sub(m.Began) }

// leftMost is the longest time left to report, in seconds. Anything slower stands still.
const leftMost = 100 * 86400

// Left estimates the time that the slowest stage needs for the rest of its work, because all of them
// work at once. It returns 0 until something has moved for long enough. A stage without bytes is
// assumed to keep up with the others, and an upload to go as fast as the download before it: a result
// in one file is sent when all of it is there.
func (m *Motion) Left() time.Duration {
	var most, later, down float64
	for _, w := range m.Work {
		speed := m.paces[w.Stage].perSecond(mark{m.at, w.Done})
		rest := float64(w.All - w.Done)
		if w.Stage == Read {
			down = speed
		}
		switch {
		case speed > 0:
			most = max(most, rest/speed)
		case w.Stage == Upload && w.Done == 0 && down > 0:
			later = rest / down
		}
	}
	if most += later; m.Ended || most > leftMost {
		return 0
	}
	return time.Duration(most * float64(time.Second))
}
