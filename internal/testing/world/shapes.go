package world

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// Unbrace returns the names that a name in testdata stands for, in their order: "a.{0-2,7}.b" is
// four of them.
func Unbrace(t testing.TB, s string) (names []string) {
	t.Helper()
	head, rest, braced := strings.Cut(s, "{")
	if !braced {
		return []string{s}
	}
	ranges, tail, closed := strings.Cut(rest, "}")
	if !closed {
		t.Fatalf("%q has no closing brace", s)
	}
	tails := Unbrace(t, tail)
	for r := range strings.SplitSeq(ranges, ",") {
		first, last, _ := strings.Cut(r, "-")
		for i := number(t, first); i <= number(t, cmp.Or(last, first)); i++ {
			for _, tail := range tails {
				names = append(names, fmt.Sprint(head, i, tail))
			}
		}
	}
	return names
}

// Shape reads a shape in testdata, such as 4096x128.
func Shape(t testing.TB, s string) (shape []int64) {
	t.Helper()
	for d := range strings.SplitSeq(s, "x") {
		shape = append(shape, number(t, d))
	}
	return shape
}

func number(t testing.TB, s string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(s, 10, 64)
	Must(t, err)
	return n
}
