package progress

import (
	"testing"
	"time"
)

// TestProgressNeverFalls: a part of the work that turns out larger than it was guessed holds the percentage, and does not
// lower it.
func TestProgressNeverFalls(t *testing.T) {
	var m Motion
	var p Counters
	now := time.Now()
	p.SourceBytes.Store(100)
	p.OutputBytes.Store(70)
	p.Expect(Upload)
	p.Uploaded.Store(35)
	m.Add(p.Snapshot(), now)
	p.OutputBytes.Store(100)
	if m.Add(p.Snapshot(), now.Add(time.Second)); int(100*m.Share) != 50 {
		t.Errorf("the share falls to %d%%", int(100*m.Share))
	}
}

// TestAverageStaysBetween: an average is never above what it is of, nor below, however long the time between two snapshots.
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

// TestProgressBeginsAnew: where work turned out to be lost and is done again, the percentage says so.
func TestProgressBeginsAnew(t *testing.T) {
	var m Motion
	var p Counters
	now := time.Now()
	p.SourceBytes.Store(100)
	for i, verified := range []int64{90, 100, 10, 20} {
		p.Verified.Store(verified)
		if m.Add(p.Snapshot(), now.Add(time.Duration(i)*time.Second)); int(100*m.Share) != int(verified) {
			t.Errorf("%d%% is shown as %d%%", verified, int(100*m.Share))
		}
	}
}

// TestTimeLeft: on a terminal, which is drawn five times a second, about how much time is left is told from the second second on,
// and surely after ten; not so of a stage that has done nothing for longer than it was ever seen to work.
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
		told, second, tenth := left > 190_000*time.Second && left < 210_000*time.Second, past/(1200*time.Millisecond), past/(10400*time.Millisecond)
		if told != (second > 0) || sure != (tenth > 0) {
			t.Errorf("after %v: %v are left of a gigabyte, at 5 kB/s, sure: %v", past, left, sure)
		}
	}
	if left, sure := look(0, 5*time.Second); left == 0 || !sure {
		t.Error("a short pause and nothing is known")
	}
	if left, sure := look(0, 10*time.Second); left > 0 || sure {
		t.Errorf("nothing moves, and %v are left", left)
	}
	if m.Elapsed() != 27*time.Second-200*time.Millisecond {
		t.Errorf("%v have passed", m.Elapsed())
	}
}
