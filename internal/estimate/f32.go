package estimate

import (
	"context"
	"errors"
	"fmt"

	"github.com/df11-convert/df11-convert/internal/exactf32"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
)

// f32Sample is how many bytes of F32 weights are looked at: 40,000 values.
const f32Sample = 160_000

// HintF32 looks at some weights of a source that was refused for its F32 weights, and says in the
// hint of refused whether they are BF16 numbers. It changes no other error, and ignores one that
// sampling meets.
func HintF32(ctx context.Context, src model.Source, m *model.Model, opt plan.Options,
	refused error) {
	r, ok := errors.AsType[*plan.RefusedError](refused)
	if !ok {
		return
	}
	opt.ExactF32 = true
	exact, err := plan.New(ctx, m.Listing, opt)
	if err != nil {
		return
	}
	e, err := Sample(ctx, src, exact, f32Sample)
	switch inexact, found := errors.AsType[*exactf32.InexactError](err); {
	case found:
		r.Hint = fmt.Sprintf("%v; convert the model to BF16 yourself if rounding is what you want",
			inexact)
	case err == nil && e.SampledBytes > 0:
		r.Hint = fmt.Sprintf("all %s sampled F32 values are exact BF16: add --exact-f32",
			human.Grouped(e.SampledBytes/4))
	}
}
