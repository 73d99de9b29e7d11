package pipeline

import (
	"errors"
	"slices"
	"testing"

	"github.com/df11-convert/df11-convert/internal/plan"
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
		{"no limit", inTurn, 0, 0, 100 + 40 + 10 + 50},
		{"room for one spool", inTurn, 100, 0, 100 + 50},
		{"room for one output", inTurn, 0, 50, 100 + 40 + 10 + 50},
		{"one is always allowed", inTurn, 1, 1, 100 + 50},
		{"begun before", overlapping, 0, 0, 140 + 10 + 50},
	} {
		if got := peakDisk(tc.arrivals, half, tc.spools, tc.outs, 1); got != tc.want {
			t.Errorf("%s: %d, want %d", tc.name, got, tc.want)
		}
	}
	many := make([]arrival, 3*tasksAhead)
	for i := range many {
		many[i] = whole(&task{size: 8})
	}
	if got := peakDisk(many, half, 0, 1, 1); got != 8*(tasksAhead+2)+4 {
		t.Errorf("many: %d", got) // one with the converter, those that wait, and one with the fetcher
	}
	if got := waiting([]int64{9, 1, 2, 3}, 0, 2); got != 5 {
		t.Errorf("the newest two take %d, want 5", got)
	}
}

// TestPeakCopies: files that are carried over are on the disk a few at a time, as many as it holds.
func TestPeakCopies(t *testing.T) {
	p := &plan.Plan{Copied: []plan.File{{Size: 3}, {Size: 10}}, Components: []plan.File{{Size: 50}, {Size: 40}}}
	for _, tc := range []struct {
		limit int64
		n     int
		want  int64
	}{{0, 1, 50}, {0, 2, 90}, {0, 9, 103}, {60, 2, 60}} {
		if got := peakCopies(p, tc.limit, tc.n); got != tc.want {
			t.Errorf("%+v: %d", tc, got)
		}
	}
}

// TestDivide: half of what is to spare goes to each side of the disk; where the disk is too small, spools are memory; where
// that is too small as well, tasks come one after the other, or the run is refused. The largest output may take 5.5 MiB.
func TestDivide(t *testing.T) {
	all := func(*task) bool { return true }
	for _, tc := range []struct {
		name         string
		disk, memory int64
		want         division
		inMemory     []int64
	}{
		{"no bound", 0, -1, division{}, nil},
		{"room for all", 20 * mb, -1, division{spools: 10*mb + 3*quarter, outputs: 9*mb + quarter}, nil},
		{"the small in memory", 20 * mb, 3 * mb, division{10*mb + quarter, 9*mb + 3*quarter, 3 * mb, false}, []int64{mb}},
		{"all in memory", 6 * mb, 8 * mb, division{1, 6 * mb, 8 * mb, false}, []int64{4 * mb, 2 * mb, mb}},
		{"the large in memory", 9 * mb, 4 * mb, division{3*mb + quarter, 5*mb + 3*quarter, 4 * mb, false}, []int64{4 * mb}},
		{"one by one", 10 * mb, -1, division{4*mb + quarter, 5*mb + 3*quarter, 0, true}, nil},
		{"one by one, with memory", 8 * mb, 4 * mb, division{2*mb + quarter, 5*mb + 3*quarter, 4 * mb, true}, []int64{4 * mb, mb}},
	} {
		tasks, segs := nested(4*mb, 2*mb, mb)
		got, err := divide(tasks, segs, demand{all, true, tc.disk, tc.memory})
		if got != tc.want || err != nil {
			t.Errorf("%s: %+v %v, want %+v", tc.name, got, err, tc.want)
		}
		var inMemory []int64
		for _, x := range tasks {
			if x.inMemory {
				inMemory = append(inMemory, x.size)
			}
		}
		if !slices.Equal(inMemory, tc.inMemory) {
			t.Errorf("%s: %d in memory", tc.name, inMemory)
		}
	}
	tasks, segs := nested(4*mb, 2*mb, mb)
	tooSmall := (*BudgetError)(nil)
	if _, err := divide(tasks, segs, demand{all, true, 8 * mb, -1}); !errors.As(err, &tooSmall) || tooSmall.Need != 9*mb+2*quarter {
		t.Error(err)
	}
}

const (
	mb      = 1 << 20
	quarter = mb / 4
)

// nested makes tasks of these sizes, each of which begins inside the one before it: all are open at once.
func nested(sizes ...int64) ([]*task, [][]segment) {
	var tasks []*task
	var first, last []segment
	for _, size := range sizes {
		t := &task{size: size}
		tasks = append(tasks, t)
		first = append(first, segment{end: size / 2, dst: []delivery{{task: t}}})
		last = append(last, segment{end: size - size/2, dst: []delivery{{task: t}}})
	}
	return tasks, [][]segment{first, last}
}

// TestCountersGo: the counts of a unit end with it. Those of a whole model of 811 GB would take 3 GB.
func TestCountersGo(t *testing.T) {
	x := &task{units: []*taskUnit{{sizes: []int64{4}}}}
	if err := newCounters(x); err != nil {
		t.Fatal(err)
	}
	x.units[0].counter.Add(0, []byte{0, 0x3f, 0, 0x3e, 0, 0x3f, 0, 0x3d})
	if _, err := finishCounts(x); err != nil || x.units[0].counter != nil {
		t.Error(err, x.units[0].counter)
	}
}
