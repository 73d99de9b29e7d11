package progress

import "time"

// Motion measures how fast things move from one snapshot to the next. The zero value is ready to
// use.
type Motion struct {
	Snapshot           // the latest
	Share    float64   // of all work, 0 to 1; it never falls
	Ended    bool      // the stages have stopped: nothing is left to do
	Began    time.Time // when the run began; by default, the time of the first snapshot
	at       time.Time
	paces    []pace // by Stage
}

// pace measures the speed of one stage. If the stage has work, it also has a steady speed, which
// predicts the time left. The steady speed counts from the stage's first work on, because the last
// stages begin later.
type pace struct {
	speed  average // bytes per second, over the last seconds
	busy   average // share of the time
	steady average // bytes per second of its work, up to the last time it did some
	age    float64 // seconds that steady covers
	idle   float64 // seconds since then
	begun  bool
}

// Seconds: over which speeds are averaged, and for how long a steady speed must have been measured
// until Left returns a rough time, and until that time is sure.
const (
	speedWindow  = 5
	steadyWindow = 30
	aboutLeast   = 1
	steadyLeast  = 10
)

// work adds what the stage did in the last dt seconds. With large modules, the last stages work in
// bursts, so idle time counts toward the next burst. The window is three quarters of the time so
// far: it gets steadier with time, but it can forget a slow start.
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

// known reports whether the steady speed was measured for that many seconds, and the stage hasn't
// been idle for longer than it was measured.
func (p *pace) known(seconds float64) bool { return p.age >= seconds && p.idle <= p.age }

// average is a moving average: over all of the time at first, then over the last seconds of its
// window.
type average struct{ value, seconds float64 }

func (a *average) add(x, dt, window float64) {
	a.seconds = min(a.seconds+dt, max(window, dt))
	a.value += dt / a.seconds * (x - a.value)
}

// Add takes the next snapshot. If work was lost and starts again, the motion starts again, too.
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

// Elapsed returns how long the run has lasted.
func (m *Motion) Elapsed() time.Duration { return m.at.Sub(m.Began) }

// Speed returns a stage's recent speed in bytes per second. measured is false until it is known.
func (m *Motion) Speed(s Stage) (perSecond float64, measured bool) {
	p := &m.paces[s]
	return p.speed.value, p.speed.seconds > 0
}

// Bottleneck names the stage that the others wait for, or "". A stage that is idle half of the time
// makes no other wait.
func (m *Motion) Bottleneck() (name string) {
	most := 0.5
	for i, p := range m.paces {
		if p.busy.value > most && !m.Ended {
			name, most = m.Stages[i].Stage, p.busy.value
		}
	}
	return name
}

// leftMost is the longest time left to report, in seconds. Anything slower stands still.
const leftMost = 100 * 86400

// Left returns the time that the slowest stage needs for the rest of its work, because all of them
// work at once. It returns 0 until something has moved for long enough. The time is sure once bytes
// have passed every stage for a while. Until then, Left assumes that a stage without bytes keeps up
// with the others, and that an upload goes as fast as the download before it: a result in one file
// is sent when all of it is there.
func (m *Motion) Left() (left time.Duration, sure bool) {
	var most, later float64
	sure = true
	for _, w := range m.Work() {
		p := &m.paces[w.Stage]
		if w.Done == w.All {
			continue
		}
		sure = sure && p.known(steadyLeast)
		if p.known(aboutLeast) {
			most = max(most, float64(w.All-w.Done)/p.steady.value)
		} else if down := m.paces[Read].steady.value; w.Stage == Upload && !p.begun && down > 0 {
			later = float64(w.All-w.Done) / down
		}
	}
	if most > 0 {
		most += later
	}
	if m.Ended || most > leftMost {
		return 0, false
	}
	return time.Duration(most * float64(time.Second)), sure
}
