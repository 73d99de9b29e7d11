package progress

import "time"

// Motion tells from one snapshot to the next how fast things move. The zero value has seen none.
type Motion struct {
	Snapshot           // the newest
	Share    float64   // of the whole work, 0 to 1; it never falls
	Ended    bool      // the stages have stopped: nothing is left, and nobody waits
	Began    time.Time // of the run; the zero value is the time of the first snapshot
	at       time.Time
	paces    []pace // by Stage
}

// pace tells how fast one stage is. A stage that has work also has a steady speed, from which the
// time left follows. The steady speed counts from the first time that the stage did something,
// since the last stages begin later.
type pace struct {
	speed  average // bytes per second, over the last seconds
	busy   average // share of the time
	steady average // bytes per second of its work, up to the last time that something was done
	age    float64 // seconds that steady covers
	idle   float64 // seconds since then
	begun  bool
}

// Seconds over which speeds are averaged, after which a steady speed tells about how much time is
// left, and after which it is believed.
const (
	speedWindow  = 5
	steadyWindow = 30
	aboutLeast   = 1
	steadyLeast  = 10
)

// work takes what was done in the last dt seconds. Large modules reach the last stages in bursts,
// so the time before a burst belongs to it. The average is over most of the time: it gets steadier
// the longer that is, and forgets a slow line.
func (p *pace) work(bytes, dt float64) {
	p.idle += dt
	if bytes == 0 {
		return
	}
	if p.begun {
		p.age += p.idle
		p.steady.add(bytes/p.idle, p.idle, max(steadyWindow, p.age*3/4))
	}
	p.begun, p.idle = true, 0
}

// known reports whether the steady speed was measured for this long, and still holds as far as
// anybody can tell.
func (p *pace) known(seconds float64) bool { return p.age >= seconds && p.idle <= p.age }

// average is a moving average: over all of the time at first, then over the last seconds, as many
// as its window has.
type average struct{ value, seconds float64 }

func (a *average) add(x, dt, window float64) {
	a.seconds = min(a.seconds+dt, max(window, dt))
	a.value += dt / a.seconds * (x - a.value)
}

// Add takes the next snapshot. Work that was lost and begins anew begins a new motion.
func (m *Motion) Add(s Snapshot, now time.Time) {
	work, before := s.Work(), m.Work()
	if len(work) != len(before) || s.SourceBytes != m.SourceBytes || s.Verified < m.Verified {
		if m.Began.IsZero() {
			m.Began = now
		}
		*m = Motion{Snapshot: s, Began: m.Began, at: now, Share: s.Share(),
			paces: make([]pace, nStages)}
		return
	}
	if dt := now.Sub(m.at).Seconds(); dt > 0 {
		m.Share = max(m.Share, s.Share())
		for i, w := range work {
			m.paces[w.Stage].work(float64(max(0, w.Done-before[i].Done)), dt)
		}
		for i, st := range s.Stages {
			m.paces[i].speed.add(float64(st.Bytes-m.Stages[i].Bytes)/dt, dt, speedWindow)
			m.paces[i].busy.add((st.Busy-m.Stages[i].Busy).Seconds()/dt, dt, speedWindow)
		}
	}
	m.Snapshot, m.at = s, now
}

// Elapsed is how long the run has lasted.
func (m *Motion) Elapsed() time.Duration { return m.at.Sub(m.Began) }

// Speed is how many bytes per second have passed a stage of late; measured is false before that can
// be told.
func (m *Motion) Speed(s Stage) (perSecond float64, measured bool) {
	p := &m.paces[s]
	return p.speed.value, p.speed.seconds > 0
}

// Bottleneck names the stage that the others wait for, "" for none: a stage that is idle half of
// the time keeps nobody waiting.
func (m *Motion) Bottleneck() (name string) {
	most := 0.5
	for i, p := range m.paces {
		if p.busy.value > most && !m.Ended {
			name, most = m.Stages[i].Stage, p.busy.value
		}
	}
	return name
}

// leftMost is the longest time left that is told, in seconds: what is slower stands still.
const leftMost = 100 * 86400

// Left is the time that the slowest stage needs for the rest of its work, since all of them work at
// once; 0 where nothing has moved for long enough to tell. It is sure when something has passed
// every stage, and some time after that; until then a stage that nothing has reached is taken to
// keep up with the others.
func (m *Motion) Left() (left time.Duration, sure bool) {
	var most float64
	sure = true
	for _, w := range m.Work() {
		p := &m.paces[w.Stage]
		if w.Done == w.All {
			continue
		}
		sure = sure && p.known(steadyLeast)
		if p.known(aboutLeast) {
			most = max(most, float64(w.All-w.Done)/p.steady.value)
		}
	}
	if m.Ended || most > leftMost {
		return 0, false
	}
	return time.Duration(most * float64(time.Second)), sure
}
