package pipeline

import (
	"errors"
	"testing"
)

// TestPeakDisk follows three tasks of which the second begins before the first is complete.
func TestPeakDisk(t *testing.T) {
	a, b, c := &task{size: 100}, &task{size: 40}, &task{size: 10}
	whole := func(t *task) arrival { return arrival{t, true, true} }
	half := func(t *task) int64 { return t.size / 2 }
	inTurn := []arrival{whole(a), whole(b), whole(c)}
	overlapping := []arrival{{b, true, false}, {a, true, true}, {b, false, true}, whole(c)}
	for _, tc := range []struct {
		name         string
		arrivals     []arrival
		spools, outs int64
		want         int64
	}{
		{"no limit", inTurn, 0, 0, 100 + 40 + 50},
		{"room for one spool", inTurn, 100, 0, 100 + 50},
		{"room for one output", inTurn, 0, 50, 100 + 40 + 50},
		{"one is always allowed", inTurn, 1, 1, 100 + 50},
		{"begun before", overlapping, 0, 0, 140 + 50},
	} {
		if got := peakDisk(tc.arrivals, half, tc.spools, tc.outs, 1); got != tc.want {
			t.Errorf("%s: %d, want %d", tc.name, got, tc.want)
		}
	}
	if got := waiting([]int64{9, 1, 2, 3}, 0, 2); got != 5 {
		t.Errorf("the newest two take %d, want 5", got)
	}
}

// TestDivideDisk: half of what is to spare goes to each side; too small a disk streams task by task, or is refused.
func TestDivideDisk(t *testing.T) {
	spools, outs, byTask, err := divideDisk(100, 40, 20, 10)
	if spools != 60 || outs != 40 || byTask || err != nil {
		t.Error(spools, outs, byTask, err)
	}
	spools, outs, byTask, err = divideDisk(50, 40, 20, 10)
	if spools != 20 || outs != 30 || !byTask || err != nil {
		t.Error(spools, outs, byTask, err)
	}
	tooSmall := (*BudgetError)(nil)
	if _, _, _, err := divideDisk(29, 40, 20, 10); !errors.As(err, &tooSmall) || tooSmall.Need != 30 || tooSmall.Have != 29 {
		t.Error(err)
	}
}
