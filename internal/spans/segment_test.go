package spans_test

import (
	"testing"

	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// An empty tensor has the offset of the tensor after it, whose bytes must still go where they
// belong.
func TestEmptyTensorTakesNoBytes(t *testing.T) {
	empty, full := plan.Tensor{Name: "empty", Offset: 10}, plan.Tensor{Name: "full", Offset: 10, Length: 6}
	for _, plain := range [][]plan.Tensor{{empty, full}, {full, empty}} {
		outputs := world.Got(spans.Outputs(&plan.Plan{OutputFiles: []plan.OutputFile{{Path: "o", Plain: plain}}}))(t)
		found := spans.Segments(outputs, 1)[0]
		if len(found) != 1 || found[0].Off != 10 || found[0].End != 16 || len(found[0].To) != 1 || found[0].To[0].Name != "full" {
			t.Errorf("%+v", found)
		}
	}
}

// The finishing run makes outputs without units, whichever part is the smallest.
func TestOutputsWithoutUnitsAreOfNoPart(t *testing.T) {
	unit, rest := &spans.Output{Path: "unit", Units: []*spans.Unit{{}}, Size: 9}, &spans.Output{Path: "rest", Size: 5}
	if makers := spans.Assign([]*spans.Output{unit, rest}, 2); makers[unit] != 1 || len(makers) != 1 {
		t.Errorf("%v", makers)
	}
}
