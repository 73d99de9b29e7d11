package terminal

import "testing"

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
