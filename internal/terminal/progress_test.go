package terminal

import "testing"

// A run that ended with an error isn't done, whatever its stages have done.
func TestOnlySuccessIsDone(t *testing.T) {
	m := State{Share: 1}
	for _, c := range []struct {
		ended, failed bool
		want          int
	}{{false, false, 99}, {true, true, 99}, {true, false, 100}} {
		m.Ended, m.Failed = c.ended, c.failed
		if got := Percent(m); got != c.want {
			t.Errorf("%+v: %d%%", c, got)
		}
	}
}

// Bars keep their width while stages begin, work, and end.
func TestBarsKeepTheirWidth(t *testing.T) {
	for width := 61; width < 220; width++ {
		for _, done := range []int64{0, 1, 50, 99, 100} {
			if got, want := Columns(bar("read", done, 100, width)), 14+min(36, width-60); got != want {
				t.Errorf("%d of 100: a bar takes %d columns of %d, want %d", done, got, width, want)
			}
		}
	}
}
