package main

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/df11-convert/df11-convert/internal/progress"
	"github.com/df11-convert/df11-convert/internal/terminal"
)

// simulated is a conversion that is pushed, in virtual time. A unit is encoded and verified when all of it was read, and
// uploaded after that; the line takes some seconds until it is at its speed.
type simulated struct {
	size, unit, found int64 // bytes of source: of all, of a unit, and what an earlier run has done
	down, up          float64
	slow              time.Duration // until the line is at its speed; a hundredth of that before
}

// run moves the counters until all is done.
func (c simulated) run(p *progress.Counters) {
	p.SourceBytes.Store(c.size)
	p.OutputBytes.Store(c.size * 7 / 10)
	p.OutputFiles.Store(c.size / c.unit)
	p.Expect(progress.Read, progress.Encode, progress.Verify, progress.Upload)
	for _, n := range []interface{ Store(int64) }{&p.Encoded, &p.Verified, &p.Found} {
		n.Store(c.found)
	}
	p.Uploaded.Store(c.found * 7 / 10)
	const step = time.Second
	begin, read, sent := time.Now(), 0.0, float64(c.found*7/10)
	for p.Uploaded.Load() < p.OutputBytes.Load() {
		done := p.Timed(progress.Read)
		time.Sleep(step)
		speed := c.down * step.Seconds()
		if time.Since(begin) < c.slow {
			speed /= 100
		}
		if time.Since(begin) > c.slow/2 { // the fetcher has passed what is done already
			read = max(read, float64(c.found))
		}
		read = min(read+speed, float64(c.size))
		done(int64(read) - p.Fetched.Load())
		p.Fetched.Store(int64(read))
		whole := max(c.found, int64(read)/c.unit*c.unit)
		p.Encoded.Store(whole)
		p.Verified.Store(whole)
		sent = min(sent+c.up*step.Seconds(), float64(whole*7/10))
		p.Uploaded.Store(int64(sent))
	}
}

// lines keeps what is written, with the time.
type lines struct {
	texts []string
	at    []time.Time
}

func (l *lines) Write(b []byte) (int, error) {
	l.texts, l.at = append(l.texts, string(b)), append(l.at, time.Now())
	return len(b), nil
}

// TestTimeLeftIsNeverWild: the time that is left is shown before a quarter of a conversion is over, and never before it can be
// told: from the first to the last time, it is about what it turns out to be, whether the line down or up is the slow one,
// whatever the size of units, and whatever earlier runs have done.
func TestTimeLeftIsNeverWild(t *testing.T) {
	for name, c := range map[string]simulated{
		"small units":           {size: 16e9, unit: 50e6, down: 20e6, up: 1e9, slow: 3 * time.Second},
		"large units":           {size: 200e9, unit: 4e9, down: 100e6, up: 1e9, slow: 3 * time.Second},
		"a slow line up":        {size: 16e9, unit: 400e6, down: 100e6, up: 10e6, slow: 3 * time.Second},
		"a slow start":          {size: 16e9, unit: 400e6, down: 50e6, up: 50e6, slow: 20 * time.Second},
		"resumed":               {size: 160e9, unit: 400e6, found: 100e9, down: 100e6, up: 100e6, slow: 3 * time.Second},
		"resumed, slow to go":   {size: 160e9, unit: 400e6, found: 100e9, down: 100e6, up: 30e6, slow: 30 * time.Second},
		"days":                  {size: 800e9, unit: 4e9, down: 5e6, up: 5e6, slow: 3 * time.Second},
		"over before it's told": {size: 1e9, unit: 50e6, down: 100e6, up: 1e9, slow: 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { c.holds(t) })
		})
	}
}

func (c simulated) holds(t *testing.T) {
	var l lines
	burst := time.Duration(float64(c.unit) / min(c.down, c.up) * float64(time.Second))
	slack := 15*time.Second + burst
	u, p := &ui{screen: &terminal.Screen{W: &l}}, new(progress.Counters)
	begin, stop := time.Now(), u.watch(p)
	c.run(p)
	stop()
	end, about, first := time.Now(), time.Duration(0), time.Duration(0)
	for i, text := range l.texts {
		_, text, _ = strings.Cut(text, "% · ")
		text, _, shown := strings.Cut(text, " left")
		if !shown {
			continue
		}
		if about == 0 {
			about = l.at[i].Sub(begin)
		}
		if strings.HasPrefix(text, "about ") {
			continue
		}
		if first == 0 {
			first = l.at[i].Sub(begin)
		}
		left, err := parseTimeLeft(text)
		if want := end.Sub(l.at[i]); err != nil || left < want/2-slack || left > want*3/2+slack {
			t.Errorf("%v after the start %s are left, and it turns out to be %v (%v)", l.at[i].Sub(begin), text, want, err)
		}
	}
	if all := end.Sub(begin); about > 10*time.Second && about != c.slow+10*time.Second {
		t.Errorf("not even about how long is told before %v", about)
	} else if first > all/4+20*time.Second || first == 0 && all > time.Minute {
		t.Errorf("first told after %v of %v", first, all)
	} else {
		t.Logf("first told after %v of %v", first, all)
	}
}

// parseTimeLeft reads what timeLeft writes.
func parseTimeLeft(text string) (time.Duration, error) {
	days, hours, ok := strings.Cut(text, "d")
	if !ok {
		return time.ParseDuration(text)
	}
	n, err := time.ParseDuration(days + "h")
	if err != nil {
		return 0, err
	}
	rest, err := time.ParseDuration(hours)
	return 24*n + rest, err
}
