package human_test

import (
	"slices"
	"testing"

	"github.com/df11-convert/df11-convert/internal/human"
)

func TestCompareNames(t *testing.T) {
	want := []string{"", "layers.1", "layers.1.b", "layers.01", "layers.2", "layers.10", "layers.18446744073709551617", "lm"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, human.CompareNames)
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
