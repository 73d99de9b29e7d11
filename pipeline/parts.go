package pipeline

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"

	"github.com/df11-convert/df11-convert/hub"
)

// Part is the share of a conversion that one machine does: I of N, counted from 1. The zero Part is the whole.
type Part struct{ I, N int }

func (p Part) check() error {
	if p != (Part{}) && (p.N < 1 || p.I < 1 || p.I > p.N) {
		return fmt.Errorf("part %d of %d: parts are counted from 1", p.I, p.N)
	}
	return nil
}

// whole tells whether one machine does everything.
func (p Part) whole() bool { return p == (Part{}) }

// String names the part's journal.
func (p Part) String() string {
	if p.whole() {
		return "part-1-of-1"
	}
	return fmt.Sprintf("part-%d-of-%d", p.I, p.N)
}

// finishPart names the journal of the run that completes what the parts made.
const finishPart = "finish"

// journalDir is the folder in the target repo that holds the journals until the conversion is complete.
const journalDir = ".df11"

func journalPath(part string) string { return path.Join(journalDir, part+".json") }

func isJournal(name string) bool { return path.Dir(name) == journalDir && path.Ext(name) == ".json" }

// assign deals the tasks with units to n parts: largest first, each to the part with the least bytes so far. It depends
// on the plan alone. Tasks without units (the remainder) belong to no part; the finishing run makes them.
func assign(tasks []*task, n int) map[*task]int {
	bySize := slices.Clone(tasks)
	slices.SortStableFunc(bySize, func(a, b *task) int { return cmp.Compare(b.size, a.size) })
	load := make([]int64, n)
	owner := map[*task]int{}
	for _, t := range bySize {
		if len(t.units) == 0 {
			continue
		}
		least := 0
		for i := range load {
			if load[i] < load[least] {
				least = i
			}
		}
		load[least] += t.size
		owner[t] = least + 1
	}
	return owner
}

// ours keeps the tasks that this run makes.
func (r *run) ours(all []*task) []*task {
	if r.Part.whole() {
		return all
	}
	owner := assign(all, r.Part.N)
	return slices.DeleteFunc(slices.Clone(all), func(t *task) bool { return owner[t] != r.Part.I })
}

// PartsError says which parts are not complete.
type PartsError struct {
	N       int
	Missing map[int][]string // outputs by part
}

func (e *PartsError) Error() string {
	var parts []string
	for i := 1; i <= e.N; i++ {
		if names := e.Missing[i]; len(names) > 0 {
			parts = append(parts, fmt.Sprintf("part %d of %d lacks %s", i, e.N, summary(names)))
		}
	}
	return "not all parts are there: " + summary(parts)
}

// partJournal matches the journals of a split conversion.
var partJournal = regexp.MustCompile(`^\.df11/part-(\d+)-of-(\d+)\.json$`)

// splitOf finds out into how many parts the conversion in a tree was split.
func splitOf(tree map[string]hub.TreeEntry) (int, error) {
	n := 0
	for p := range tree {
		m := partJournal.FindStringSubmatch(p)
		if m == nil {
			continue
		}
		of, err := strconv.Atoi(m[2])
		if err != nil || of < 1 || n != 0 && of != n {
			return 0, fmt.Errorf("%s: the journals are of different splits", p)
		}
		n = of
	}
	if n == 0 {
		return 0, fmt.Errorf("no part has been published yet")
	}
	return n, nil
}

// checkParts makes sure that every output with units is there.
func (r *run) checkParts() error {
	e := &PartsError{N: r.split, Missing: map[int][]string{}}
	all := newTasks(r.Plan)
	owner := assign(all, r.split)
	for _, t := range all {
		if _, done := r.ledger.output(t.path); !done && len(t.units) > 0 {
			e.Missing[owner[t]] = append(e.Missing[owner[t]], t.path)
		}
	}
	if len(e.Missing) > 0 {
		return e
	}
	return nil
}
