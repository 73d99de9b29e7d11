package proof

import (
	"errors"
	"testing"

	"github.com/df11-convert/df11-convert/verify"
)

// TestFailedCountHidesNoDifference: a weight that differs is told, even where the source can't be read again to count the others.
func TestFailedCountHidesNoDifference(t *testing.T) {
	found := &verify.MismatchError{Unit: "model.layers.0", Tensor: "w.weight", Elem: 3, Got: 0x3f80, Want: 0x3f81}
	for _, all := range []bool{false, true} {
		f := findings{Differences: Differences{All: all}, noted: map[string]bool{}}
		err := f.unitFault(found, found.Unit, func() (differing, of int64, err error) { return 2, 10, errors.New("no connection") })
		if stops := err != nil; stops == all || stops && !errors.Is(err, found) {
			t.Errorf("all %v: got %v", all, err)
		}
		if !errors.Is(f.first, found) || f.Modules != 1 || f.Weights != 2 || f.Compared != 10 || len(f.List) != 1 || f.List[0].Got != "0x3f80" {
			t.Errorf("all %v: noted %+v", all, f)
		}
	}
}
