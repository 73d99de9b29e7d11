package progress

import (
	"math"
	"testing"
	"time"
)

// The percentage stays where it is if a part of the work turns out larger than estimated, and falls
// only if work was lost and is done again.
func TestPercentage(t *testing.T) {
	var p Counters
	m := Motion{Counters: &p}
	now := time.Now()
	p.SourceBytes.Store(100)
	p.Expect(Verify, Upload)
	for i, x := range []struct{ verified, uploaded, output, share int64 }{
		{90, 35, 70, 50}, {90, 35, 100, 50}, {100, 60, 100, 60}, {10, 60, 100, 10}, {20, 60, 100, 20},
	} {
		p.Verified.Store(x.verified)
		p.Uploaded.Store(x.uploaded)
		p.OutputBytes.Store(x.output)
		if m.Look(now.Add(time.Duration(i) * time.Second)); int64(100*m.Share) != x.share {
			t.Errorf("%+v: the share is %v", x, m.Share)
		}
	}
}

// Left returns nothing in the first second, and nothing that a wait of a hundred days would follow.
func TestTimeLeft(t *testing.T) {
	var p Counters
	p.SourceBytes.Store(1e9)
	now := time.Now()
	m := Motion{Counters: &p, Began: now}
	look := func(bytes int64, after time.Duration) time.Duration {
		p.Verified.Add(bytes)
		now = now.Add(after)
		m.Look(now)
		return m.Left()
	}
	for past := time.Duration(0); past < 12*time.Second; past += 200 * time.Millisecond {
		left := look(1000, 200*time.Millisecond)
		if known := left > 190_000*time.Second && left < 210_000*time.Second; known != (past >= time.Second) {
			t.Errorf("after %v: %v are left of a gigabyte, at 5 kB/s", past, left)
		}
	}
	if left := look(0, time.Hour); left > 0 {
		t.Errorf("nothing moves, and %v are left", left)
	}
	if want := time.Hour + 12*time.Second; m.Elapsed() != want {
		t.Errorf("%v have passed, want %v", m.Elapsed(), want)
	}
}

// simulated is a conversion with --push. A unit is encoded and verified when all of it has been
// read, and uploaded after that. The connection takes some time to reach its speed. A file
// is confirmed as a whole.
type simulated struct {
	size, unit, found int64 // bytes of source: of all, of a unit, and of what an earlier run has done
	down, up          float64
	ranges            int64         // bytes of a source file that are read ahead, side by side
	socket            float64       // bytes that the system takes before it has sent them
	slow              time.Duration // until the connection reaches its speed; before that, it has a hundredth of it
}

// commit is how long the last commit takes, and slack by how much a time left may always be off.
const commit, slack = 2 * time.Second, 5 * time.Second

// run calls look at least a thousand times until everything is done, and returns how long that takes.
func (c simulated) run(look func(m *Motion, at time.Duration)) (at time.Duration) {
	var p Counters
	m := Motion{Counters: &p}
	p.SourceBytes.Store(c.size)
	p.OutputBytes.Store(c.size * 7 / 10)
	p.OutputFiles.Store((c.size + c.unit - 1) / c.unit)
	p.Expect(Read, Encode, Verify, Upload)
	step := time.Duration(float64(c.size) / min(c.down, c.up) * float64(time.Second) / 1000)
	step = min(step, time.Second)
	begin, read, sent := time.Now(), 0.0, float64(c.found*7/10)
	result, done := float64(c.size*7/10), time.Duration(0)
	for ; at <= done+commit || sent < result; at += step {
		if sent < result {
			done = at
		}
		whole := max(c.found, int64(read)/c.unit*c.unit)
		switch {
		case int64(read) >= c.size:
			whole = c.size
		case c.ranges > 0: // a unit is whole with the last of its bytes, most of them near the end
			whole = max(0, int64(read)-c.ranges) / c.unit * c.unit
		}
		for _, s := range []Stage{Encode, Verify} {
			p.meters[s].bytes.Store(whole)
			p.meters[s].busy.Store(whole * int64(time.Second) / 200e6)
		}
		p.sending.Store(0)
		if sent < float64(whole*7/10) {
			p.sending.Store(1)
		}
		sent = min(sent+c.up*step.Seconds(), float64(whole*7/10))
		p.Fetched.Store(int64(read))
		p.Encoded.Store(whole)
		p.Verified.Store(whole)
		handed := min(sent+c.socket, float64(whole*7/10))
		p.Uploaded.Store(int64(handed))
		files := math.Floor(sent / result * float64(p.OutputFiles.Load()))
		p.unconfirmed.Store(int64(handed - files/float64(p.OutputFiles.Load())*result))
		m.Look(begin.Add(at))
		look(&m, at)
		speed := c.down * step.Seconds()
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

// Once 10% of the time has passed, the time left is within a factor of two of the true one, give or
// take 5 seconds: for speeds from 1 MB/s to 1 GB/s in each direction, small models and large
// ones, whatever earlier runs have done, however slow the start is, and however much the system takes
// before it sends it. So is that of a result in one
// file, which is sent when all of it is there, if both directions are as fast.
func TestTimeLeftAtAnySpeed(t *testing.T) {
	cases := []simulated{
		{size: 200e9, unit: 4e9, down: 100e6, up: 1e9, slow: 3 * time.Second},
		{size: 16e9, unit: 400e6, down: 50e6, up: 50e6, slow: 20 * time.Second},
		{size: 160e9, unit: 400e6, found: 100e9, down: 100e6, up: 100e6, slow: 3 * time.Second},
		{size: 160e9, unit: 400e6, found: 100e9, down: 100e6, up: 30e6, slow: 30 * time.Second},
		{size: 800e9, unit: 4e9, down: 5e6, up: 5e6, slow: 3 * time.Second},
		{size: 322e6, unit: 30e6, down: 3e6, up: 3e6, slow: time.Second},
		{size: 322e6, unit: 100e6, down: 3e6, up: 3e6, slow: time.Second},
		{size: 322e6, unit: 30e6, ranges: 100e6, down: 3e6, up: 3e6, slow: time.Second},
		{size: 322e6, unit: 30e6, ranges: 300e6, down: 3e6, up: 3e6, slow: time.Second},
		{size: 59e6, unit: 6e6, ranges: 50e6, down: 2e6, up: 2e6, slow: time.Second},
	}
	for _, down := range []float64{1e6, 3e6, 10e6, 30e6, 100e6} {
		cases = append(cases, simulated{size: 16e9, unit: 16e9, down: down, up: down, slow: 2 * time.Second})
		for _, up := range []float64{1e6, 3e6, 10e6, 100e6, 1e9} {
			cases = append(cases,
				simulated{size: 16e9, unit: 400e6, down: down, up: up, slow: 2 * time.Second},
				simulated{size: 1e9, unit: 100e6, down: down, up: up, slow: 2 * time.Second})
		}
	}
	for _, c := range cases {
		all := c.run(func(*Motion, time.Duration) {})
		worst, wrong := 1.0, time.Duration(0)
		for _, c.socket = range []float64{0, 1e6, 8e6} {
			c.run(func(m *Motion, at time.Duration) {
				if at < max(all/10, 2*c.slow) {
					return
				}
				left, want := (m.Left() + slack).Seconds(), (all - at + slack).Seconds()
				if off := max(left/want, want/left); off > worst {
					worst, wrong = off, at
				}
			})
		}
		t.Logf("%4.0f GB in units of %3.1f, down %4.0f, up %4.0f MB/s: within a factor of %.2f, at %v of %v",
			float64(c.size)/1e9, float64(c.unit)/1e9, c.down/1e6, c.up/1e6, worst, wrong, all)
		if worst > 2 {
			t.Errorf("%+v: off by a factor of %.2f %v after the start, of %v", c, worst, wrong, all)
		}
	}
}

// A bar of the library measures over its last ten half seconds, waits included. A stage that works in
// bursts needs more than that: our own rates are there for this case.
func TestBurstsNeedTheirOwnRate(t *testing.T) {
	c := simulated{size: 322e6, unit: 100e6, down: 3e6, up: 3e6, slow: time.Second}
	all, worst := c.run(func(*Motion, time.Duration) {}), 1.0
	type look struct {
		at   time.Duration
		work []Work
	}
	var looks []look
	c.run(func(m *Motion, at time.Duration) {
		looks = append(looks, look{at, m.Work})
		for len(looks) > 1 && at-looks[1].at >= 5*time.Second {
			looks = looks[1:]
		}
		if at < all/10 {
			return
		}
		left, want := 15.0, (all - at + 15*time.Second).Seconds()
		for i, w := range m.Work {
			if moved := float64(w.Done - looks[0].work[i].Done); moved > 0 {
				left = max(left, 15+float64(w.All-w.Done)*(at-looks[0].at).Seconds()/moved)
			}
		}
		worst = max(worst, left/want, want/left)
	})
	if worst < 4 {
		t.Errorf("the library's window is right within a factor of %.1f: use it", worst)
	}
	t.Logf("off by a factor of %.0f", worst)
}
