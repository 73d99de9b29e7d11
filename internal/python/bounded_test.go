package python_test

import (
	"testing"

	"github.com/df11-convert/df11-convert/internal/python"
)

func TestBoundedCountsOutsideOfStrings(t *testing.T) {
	for _, c := range []struct {
		text            string
		objects, values int
	}{
		{`{}`, 1, 1}, {`[1,2,{"a":[],"b":3}]`, 1, 6}, {`{"{[,\"{": "\\"}` + "\n" + `{}`, 2, 2}, {`"{{{`, 0, 0}, {`"\`, 0, 0}, {``, 0, 0},
	} {
		if err := python.Bounded([]byte(c.text), c.objects, c.values); err != nil {
			t.Errorf("%s: %v", c.text, err)
		}
		if c.objects > 0 && python.Bounded([]byte(c.text), c.objects-1, c.values) == nil {
			t.Errorf("%s has fewer than %d objects", c.text, c.objects)
		}
		if c.values > 0 && python.Bounded([]byte(c.text), c.objects, c.values-1) == nil {
			t.Errorf("%s has fewer than %d values", c.text, c.values)
		}
	}
}
