package terminal

import (
	"strings"
	"testing"
)

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

// On 40 columns, the time left stays, however long it is, and the time so far goes.
func TestTimeLeftStays(t *testing.T) {
	for _, phase := range []string{"convert", "structure"} {
		line := row(phase, 3, 100, 40, []string{"about 47h59m left", "10h05m so far", "6/36 files"})
		if !strings.HasSuffix(line, " about 47h59m left") {
			t.Errorf("%s", line)
		}
	}
}
