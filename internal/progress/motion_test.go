package progress

import (
	"testing"
	"time"
)

// The percentage stays where it is if a part of the work turns out larger than estimated, and falls
// only if work was lost and is done again.
func TestPercentage(t *testing.T) {
	var m Motion
	var p Counters
	now := time.Now()
	p.SourceBytes.Store(100)
	p.Expect(Verify, Upload)
	for i, x := range []struct{ verified, uploaded, output, share int64 }{
		{90, 35, 70, 50}, {90, 35, 100, 50}, {100, 60, 100, 60}, {10, 60, 100, 10}, {20, 60, 100, 20},
	} {
		p.Verified.Store(x.verified)
		p.Uploaded.Store(x.uploaded)
		p.OutputBytes.Store(x.output)
		if m.Add(p.Snapshot(), now.Add(time.Duration(i)*time.Second)); int64(100*m.Share) != x.share {
			t.Errorf("%+v: the share is %v", x, m.Share)
		}
	}
}

// An average stays between the smallest and the largest value, no matter how much time passes
// between two snapshots.
func TestAverageStaysBetween(t *testing.T) {
	for _, dt := range []float64{0.2, 5, 10, 1000} {
		var a average
		for i := range 20 {
			a.add(float64(100+100*(i%2)), dt, speedWindow)
			if a.value < 99.999 || a.value > 200.001 {
				t.Errorf("every %v s 100 and 200 in turn: %v", dt, a.value)
			}
		}
	}
}

// On a terminal, which is drawn five times a second, Left returns a rough time from the second
// second on, and a sure one after ten. It returns nothing for a stage that has been idle for longer
// than it was ever seen to work.
func TestTimeLeft(t *testing.T) {
	var p Counters
	var m Motion
	p.SourceBytes.Store(1e9)
	now := time.Now()
	look := func(bytes int64, after time.Duration) (time.Duration, bool) {
		p.Verified.Add(bytes)
		now = now.Add(after)
		m.Add(p.Snapshot(), now)
		return m.Left()
	}
	for past := time.Duration(0); past < 12*time.Second; past += 200 * time.Millisecond {
		left, sure := look(1000, 200*time.Millisecond)
		rough, second, tenth := left > 190_000*time.Second && left < 210_000*time.Second, past/(1200*time.Millisecond), past/(10400*time.Millisecond)
		if rough != (second > 0) || sure != (tenth > 0) {
			t.Errorf("after %v: %v are left of a gigabyte, at 5 kB/s, sure: %v", past, left, sure)
		}
	}
	if left, sure := look(0, 5*time.Second); left == 0 || !sure {
		t.Error("after a short wait, no time left is known")
	}
	if left, sure := look(0, 10*time.Second); left > 0 || sure {
		t.Errorf("nothing moves, and %v are left", left)
	}
	if m.Elapsed() != 27*time.Second-200*time.Millisecond {
		t.Errorf("%v have passed", m.Elapsed())
	}
}

// simulated is a conversion with --push. A unit is encoded and verified when all of it has been
// read, and uploaded after that. The connection takes some time to reach its speed.
type simulated struct {
	size, unit, found int64 // bytes of source: of all, of a unit, and of what an earlier run has done
	down, up          float64
	slow              time.Duration // until the connection reaches its speed; before that, it has a hundredth of it
}

// run calls look every ten seconds, as a log does, until everything is done, and returns how long
// that takes.
func (c simulated) run(look func(m *Motion, at time.Duration)) (at time.Duration) {
	var p Counters
	var m Motion
	p.SourceBytes.Store(c.size)
	p.OutputBytes.Store(c.size * 7 / 10)
	p.Expect(Read, Encode, Verify, Upload)
	begin, read, sent := time.Now(), 0.0, float64(c.found*7/10)
	for ; sent < float64(c.size*7/10); at += time.Second {
		whole := max(c.found, int64(read)/c.unit*c.unit)
		sent = min(sent+c.up, float64(whole*7/10))
		p.Fetched.Store(int64(read))
		p.Encoded.Store(whole)
		p.Verified.Store(whole)
		p.Uploaded.Store(int64(sent))
		m.Add(p.Snapshot(), begin.Add(at))
		if at%(10*time.Second) == 0 {
			look(&m, at)
		}
		speed := c.down
		if at < c.slow {
			speed /= 100
		}
		if at > c.slow/2 { // by now, the fetcher has skipped what is already done
			read = max(read, float64(c.found))
		}
		read = min(read+speed, float64(c.size))
	}
	return at
}

// Left returns a sure time before a quarter of a conversion is over, and never too early: from the
// first to the last time, it's about right. It doesn't matter whether the download or the upload is
// slow, how large the units are, or what earlier runs have done.
func TestTimeLeftIsNeverWild(t *testing.T) {
	for name, c := range map[string]simulated{
		"small units":         {size: 16e9, unit: 50e6, down: 20e6, up: 1e9, slow: 3 * time.Second},
		"large units":         {size: 200e9, unit: 4e9, down: 100e6, up: 1e9, slow: 3 * time.Second},
		"a slow line up":      {size: 16e9, unit: 400e6, down: 100e6, up: 10e6, slow: 3 * time.Second},
		"a slow start":        {size: 16e9, unit: 400e6, down: 50e6, up: 50e6, slow: 20 * time.Second},
		"resumed":             {size: 160e9, unit: 400e6, found: 100e9, down: 100e6, up: 100e6, slow: 3 * time.Second},
		"resumed, slow to go": {size: 160e9, unit: 400e6, found: 100e9, down: 100e6, up: 30e6, slow: 30 * time.Second},
		"days":                {size: 800e9, unit: 4e9, down: 5e6, up: 5e6, slow: 3 * time.Second},
		"over too soon":       {size: 1e9, unit: 50e6, down: 100e6, up: 1e9, slow: 3 * time.Second},
	} {
		var about, first time.Duration
		all := c.run(func(*Motion, time.Duration) {})
		slack := 15*time.Second + time.Duration(float64(c.unit)/min(c.down, c.up)*float64(time.Second))
		c.run(func(m *Motion, at time.Duration) {
			left, sure := m.Left()
			if about == 0 && left > 0 {
				about = at
			}
			if want := all - at; sure && left > 0 {
				if first == 0 {
					first = at
				}
				if left < want/2-slack || left > want*3/2+slack {
					t.Errorf("%s: %v after the start %v are left, and the true time is %v", name, at, left, want)
				}
			}
		})
		if about > 10*time.Second && about > c.slow+10*time.Second {
			t.Errorf("%s: no rough time before %v", name, about)
		}
		if first > all/4+20*time.Second || first == 0 && all > time.Minute {
			t.Errorf("%s: first sure time after %v of %v", name, first, all)
		}
	}
}

// Once 10% of the time has passed, the time left is within a factor of two of the true one, plus or
// minus the time of one unit, for speeds from 1 MB/s to 1 GB/s in each direction. So is that of a
// result in one file, which is sent when all of it is there, if both directions are as fast.
func TestTimeLeftAtAnySpeed(t *testing.T) {
	for _, down := range []float64{1e6, 3e6, 10e6, 30e6, 100e6} {
		for _, up := range []float64{1e6, 10e6, 100e6, 1e9, 0} {
			c := simulated{size: 16e9, unit: 400e6, down: down, up: up, slow: 2 * time.Second}
			unit := time.Duration(float64(c.unit) / min(down, up) * float64(time.Second))
			if up == 0 { // a result in one file, with the same speed in both directions
				c.unit, c.up, unit = c.size, down, 20*time.Second
			}
			all := c.run(func(*Motion, time.Duration) {})
			c.run(func(m *Motion, at time.Duration) {
				if at < all/10 {
					return
				}
				left, _ := m.Left()
				if want := all - at; left < want/2-unit || left > want*2+unit {
					t.Errorf("%.0f MB/s down, %.0f up, %v after the start: %v left, the true time is %v",
						down/1e6, up/1e6, at, left, want)
				}
			})
		}
	}
}
