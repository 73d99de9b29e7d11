package back

import (
	"context"
	"fmt"
	"path"
	"slices"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/verify"
)

// Pair is a DF11 model and the original that it is to hold, with its plan.
type Pair struct {
	DF11   *model.DF11
	Source model.Source
	Model  *model.Model
	Plan   *plan.Plan
}

// A Checker finds what is wrong with a DF11 model as far as no weight has to be decoded: in its
// structure, and in the hashes of its files. An error that says that the model is wrong is a
// *model.InvalidError or *verify.StructureError. One goroutine uses it.
type Checker struct {
	Pair
	Workers int // at least 1
	Checked
}

// Checked says what a Checker has looked at.
type Checked struct {
	Units   int `json:"units"`      // in DF11
	BF16    int `json:"units_bf16"` // stored unchanged
	Tensors int `json:"tensors"`    // copied ones
	// Beside are the files beside the weights that are neither the original's nor made by the
	// conversion.
	Beside []OtherFile `json:"beside"`
	// Listed files are in the manifest, without those for people; Hashed of them have the sha256
	// that it states.
	Listed   int      `json:"files_listed,omitempty"`
	Hashed   int      `json:"files_hashed,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

// Structure checks that a loader finds the model, that every unit can be decoded, and that the
// model holds what the plan says, no more and no less.
func (c *Checker) Structure(ctx context.Context) error {
	if err := c.found(); err != nil {
		return err
	}
	narrowed := 0
	for _, o := range spans.Outputs(c.Plan) {
		for _, u := range o.Units {
			if err := c.openUnit(ctx, u); err != nil {
				return fmt.Errorf("module %s: %w", u.Path, err)
			}
		}
		for t := range o.Tensors() {
			if t.ExactF32 {
				narrowed++
			}
		}
		c.Tensors += len(o.Copied)
	}
	if err := c.firstProblem(); err != nil {
		return err
	}
	if narrowed > 0 {
		c.Warn("%d tensors are F32 in the original and BF16 here", narrowed)
	}
	return nil
}

// Warn adds a warning to what was checked.
func (c *Checker) Warn(format string, args ...any) {
	c.Warnings = append(c.Warnings, fmt.Sprintf(format, args...))
}

// found checks that a loader finds the model: the official loader looks for dfloat11_config,
// without which it takes nothing for compressed, and ComfyUI for one file.
func (c *Checker) found() error {
	component := path.Dir(c.Model.Listing.Weights[0].Path)
	switch files := c.DF11.WeightFiles(); {
	case c.DF11.Dir != "" && c.ofPipeline() && component != c.DF11.Dir:
		return model.Invalidf("",
			"the modules are in %s, a loader takes them for that component, not for %s", c.DF11.Dir,
			component)
	case c.ofPipeline() && len(c.DF11.CardParts) > 0 && !slices.Contains(c.DF11.CardParts,
		component):
		return model.Invalidf(names.Card,
			"it loads the model as %s, but the modules are those of %s", c.DF11.CardParts[0],
			component)
	case c.Plan.Layout == catalog.ComfyUI && len(files) != 1:
		return model.Invalidf("", "a model for ComfyUI is one .safetensors file, here are %d",
			len(files))
	case c.Plan.Layout != catalog.ComfyUI && c.DF11.Dict == nil:
		return model.Invalidf(names.Config,
			"missing: without its dfloat11_config no loader takes this for a DF11 model")
	}
	return nil
}

// openUnit checks the arrays of a unit that is stored as DF11, and warns of wrong bytes that no
// decoder reads.
func (c *Checker) openUnit(ctx context.Context, u *spans.Unit) error {
	if !c.DF11.Coded(u.Path) {
		c.BF16++
		return nil
	}
	var unread []*verify.StructureError
	err := twice(ctx, c.DF11, func() error {
		opened, err := c.DF11.OpenSparse(ctx, u)
		if err == nil {
			unread, err = opened.CheckUnread(ctx)
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, w := range unread {
		c.Warn("%s: %v", u.Path, w)
	}
	c.Units++
	return nil
}

// firstProblem returns the first problem that headers and config show.
func (c *Checker) firstProblem() error {
	problems := c.DF11.Problems(c.Plan)
	if len(problems) == 0 {
		return nil
	}
	p := problems[0]
	stored, _ := c.DF11.Tensor(p.Name) // without a file if the problem is no stored tensor
	return model.Invalidf(stored.File, "%s: %s: it would load wrongly", p.Name, p.Detail)
}
