package pipeline

import (
	"context"
	"fmt"
	"slices"

	"github.com/df11-convert/df11-convert/internal/plan"
)

// structure checks that the model holds what the plan says, no more and no less, and that every unit can be decoded.
func (v *verification) structure(ctx context.Context) error {
	if err := v.found(); err != nil {
		return err
	}
	known := map[string]bool{}
	for _, t := range v.tasks {
		for _, u := range t.units {
			if err := v.unitStructure(ctx, u, known); err != nil {
				return fmt.Errorf("unit %s: %w", u.Path, err)
			}
		}
		for _, p := range t.plain {
			if err := v.plainStructure(p.Tensor, known); err != nil {
				return err
			}
			v.report.Tensors++
		}
	}
	for name, s := range v.DF11.tensors {
		if !known[name] {
			return wrongf(s.file, "tensor %s belongs to nothing in the original", name)
		}
	}
	if traps := v.DF11.traps(v.Plan); len(traps) > 0 {
		return wrongf("", "%s: %s (%s: it would load wrongly)", traps[0].Name, traps[0].Detail, traps[0].Trap)
	}
	if n := exactF32(v.tasks); n > 0 {
		v.warn("%d tensors are F32 in the original and BF16 here", n)
	}
	return nil
}

func (v *verification) warn(format string, args ...any) {
	v.report.Warnings = append(v.report.Warnings, fmt.Sprintf(format, args...))
}

// exactF32 counts the tensors that are stored in another type than the original's.
func exactF32(tasks []*task) (n int) {
	for _, t := range tasks {
		t.eachTensor(func(x plan.Tensor, _ int64, _ *taskUnit) {
			if x.ExactF32 {
				n++
			}
		})
	}
	return n
}

// found checks that a loader finds the model: the official one by dfloat11_config, without which it takes nothing for
// compressed, and ComfyUI as one file.
func (v *verification) found() error {
	switch files := v.DF11.weightFiles(v.DF11.Dir); {
	case v.Plan.Layout == plan.ComfyUI && len(files) != 1:
		return wrongf("", "a model for ComfyUI is one .safetensors file, here are %d", len(files))
	case v.Plan.Layout != plan.ComfyUI && v.DF11.Dict == nil:
		return wrongf("config.json", "missing: without its dfloat11_config no loader takes this for a DF11 model")
	}
	return nil
}

func (v *verification) unitStructure(ctx context.Context, u *taskUnit, known map[string]bool) error {
	if !v.DF11.coded(u.Path) {
		for _, a := range u.Attrs {
			if err := v.plainStructure(a, known); err != nil {
				return err
			}
		}
		v.report.BF16++
		return nil
	}
	for _, name := range sixTensors {
		known[u.Path+"."+name] = true
	}
	opened, err := v.DF11.openUnit(u)
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

// plainStructure checks that a copied tensor is there with its dtype and shape.
func (v *verification) plainStructure(x plan.Tensor, known map[string]bool) error {
	s, ok := v.DF11.tensors[x.Name]
	switch {
	case !ok:
		return wrongf("", "tensor %s is missing", x.Name)
	case s.DType != storedDType(x) || !slices.Equal(s.Shape, x.Shape):
		return wrongf(s.file, "tensor %s is %s %v, the original is %s %v", x.Name, s.DType, s.Shape, x.DType, x.Shape)
	}
	known[x.Name] = true
	return nil
}
