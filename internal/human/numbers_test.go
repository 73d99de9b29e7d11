package human_test

import (
	"testing"

	"github.com/df11-convert/df11-convert/internal/human"
)

// A number has at most three significant digits, and never "1000" of a unit that has a larger one.
func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 999: "999 B", 1000: "1 kB", 1024: "1.02 kB", 999_499: "999 kB", 999_500: "1.00 MB", 15_250_000: "15.2 MB",
		811_706_000_000: "812 GB", 999_600_000_000: "1.00 TB", 12_345_678_000_000: "12.3 TB",
	} {
		if got := human.Bytes(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

func TestGrouped(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", -999: "-999", 1000: "1,000", -1234567: "-1,234,567"} {
		if got := human.Grouped(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
