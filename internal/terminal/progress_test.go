package terminal

import "testing"

// Bars keep their width while stages begin, work, and end.
func TestBarsKeepTheirWidth(t *testing.T) {
	for width := 1; width < 220; width++ {
		for _, done := range []int64{0, 1, 50, 99, 100} {
			if got, want := Columns(bar("read", done, 100, width)), 14+width; got != want {
				t.Errorf("%d of 100: a bar of %d takes %d columns, want %d", done, width, got, want)
			}
		}
	}
}
