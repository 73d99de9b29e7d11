package plan_test

import (
	"testing"

	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/safetensors"
)

func init() {
	plan.CheckWritten = func(t *testing.T, h *safetensors.Header, p *plan.Plan) {
		t.Helper()
		if problems := model.CheckHeader(h, p); len(problems) > 0 {
			t.Errorf("an output made as planned has problems: %v", problems)
		}
	}
}
