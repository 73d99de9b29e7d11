package proof

import (
	"context"
	"fmt"
	"slices"

	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// structure checks that a loader finds the model, that every unit can be decoded, and that the model holds what the plan
// says, no more and no less.
func (v *verification) structure(ctx context.Context) error {
	if err := v.found(); err != nil {
		return err
	}
	narrowed := 0
	for _, o := range v.outputs {
		for _, u := range o.Units {
			if err := v.openUnit(ctx, u); err != nil {
				return fmt.Errorf("module %s: %w", u.Path, err)
			}
		}
		for t := range o.Tensors() {
			if t.ExactF32 {
				narrowed++
			}
		}
		v.report.Tensors += len(o.Copied)
	}
	if err := v.firstProblem(); err != nil {
		return err
	}
	if narrowed > 0 {
		v.warn("%d tensors are F32 in the original and BF16 here", narrowed)
	}
	return nil
}

func (v *verification) warn(format string, args ...any) {
	v.report.Warnings = append(v.report.Warnings, fmt.Sprintf(format, args...))
}

// found checks that a loader finds the model: the official loader looks for dfloat11_config, without which it takes nothing
// for compressed, and ComfyUI for one file.
func (v *verification) found() error {
	switch files := v.DF11.WeightFiles(); {
	case v.Plan.Layout == plan.ComfyUI && len(files) != 1:
		return model.Invalidf("", "a model for ComfyUI is one .safetensors file, here are %d", len(files))
	case v.Plan.Layout != plan.ComfyUI && v.DF11.Dict == nil:
		return model.Invalidf("config.json", "missing: without its dfloat11_config no loader takes this for a DF11 model")
	}
	return nil
}

// openUnit checks the arrays of a unit that is stored as DF11, and warns of wrong bytes that no decoder reads.
func (v *verification) openUnit(ctx context.Context, u *spans.Unit) error {
	if !v.DF11.Coded(u.Path) {
		v.report.BF16++
		return nil
	}
	opened, err := v.DF11.OpenUnit(u)
	if err != nil {
		return err
	}
	unread, err := opened.CheckUnread(ctx)
	if err != nil {
		return err
	}
	for _, w := range unread {
		v.warn("%s: %v", u.Path, w)
	}
	v.report.Units++
	return nil
}

// firstProblem returns the first problem that headers and config show. One that is about a tensor comes before one that is about
// a pattern: a pattern that matches no unit most often follows from a missing unit.
func (v *verification) firstProblem() error {
	problems := v.DF11.Problems(v.Plan)
	if len(problems) == 0 {
		return nil
	}
	first := slices.IndexFunc(problems, func(p plan.Problem) bool { return p.Trap != plan.TrapPattern })
	p := problems[max(0, first)]
	stored, _ := v.DF11.Tensor(p.Name) // without a file if the problem is no stored tensor
	return model.Invalidf(stored.File, "%s: %s (%s: it would load wrongly)", p.Name, p.Detail, p.Trap)
}
