package human

import (
	"cmp"
	"slices"
	"strings"
)

// maxNear is how many similar names help.
const maxNear = 5

// Near returns up to five of the names, the most similar to an unknown one first.
func Near(unknown string, names []string) []string {
	distance := map[string]int{}
	for _, n := range names {
		distance[n] = edits(unknown, n)
	}
	near := slices.Clone(names)
	slices.SortStableFunc(near, func(a, b string) int { return cmp.Compare(distance[a], distance[b]) })
	return near[:min(len(near), maxNear)]
}

// Misspelled returns the name that an unknown one is probably meant to be, or "": it's the most
// similar, with at most two wrong bytes, and one in four.
func Misspelled(unknown string, names []string) string {
	near := Near(unknown, names)
	if len(near) == 0 {
		return ""
	}
	n := edits(unknown, near[0])
	if n > 2 || 4*n > len(near[0]) {
		return ""
	}
	return near[0]
}

// Begun returns up to five of the names that begin like an unknown one, the most similar first:
// less than a third of its bytes are wrong.
func Begun(unknown string, names []string) []string {
	return Near(unknown, slices.DeleteFunc(slices.Clone(names), func(n string) bool {
		return 3*slices.Min(editsTo(unknown, n)) >= len(unknown)
	}))
}

// edits returns how many bytes must be added, removed, or replaced to turn a into b, in whatever
// case.
func edits(a, b string) int {
	all := editsTo(a, b)
	return all[len(all)-1]
}

// editsTo returns edits from a to each beginning of b.
func editsTo(a, b string) []int {
	a, b = strings.ToLower(a), strings.ToLower(b)
	row := make([]int, len(b)+1) // from the beginning of a so far
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0]++
		for j := range len(b) {
			replaced := before
			if a[i] != b[j] {
				replaced++
			}
			before = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row
}
