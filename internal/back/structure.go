package back

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/verify"
)

// A Pair is a DF11 model and the original that it should hold, with the original's plan.
type Pair struct {
	DF11   *model.DF11
	Source model.Source
	Model  *model.Model
	Plan   *plan.Plan
	// Refused says why no conversion of the original can have the model's dict. Plan is nil then.
	Refused error
}

// A Checker checks a DF11 model as far as it can without decoding weights: the model alone, by its
// structure and the hashes of its files; whether it fits the original; and the files next to the
// weights. A fault of the model is a *model.InvalidError or a *verify.StructureError. A fault of
// the pair is a *DifferentError or a *ComponentError. No check needs another one, except that
// [Checker.Fits] takes what [Checker.Structure] returns. Only one goroutine may use it.
type Checker struct {
	Pair
	workers int
	main    *plan.Source // that other files are compared with; nil: the original's commit

	found Checked // without what the next two say
	// the model lacks them, and no other check looks for them
	lost            []string
	manifestDiffers bool
	// the first file of another component that differs; nil: none
	component *ComponentError
}

// NewChecker returns a Checker of a pair that uses at least one worker. It compares files with
// main, which [Pair.Main] returns, or if that's nil, with the original's commit.
func NewChecker(p Pair, workers int, main *plan.Source) *Checker {
	return &Checker{Pair: p, workers: max(1, workers), main: main}
}

// A DifferentError says that, by its headers, a DF11 model holds other weights than the original.
type DifferentError struct{ Name, Detail string }

func (e *DifferentError) Error() string { return e.Name + ": " + e.Detail }

// Subject returns model.OfPair.
func (e *DifferentError) Subject() string { return model.OfPair }

// An OtherError says that no conversion of an original can have made a DF11 model.
type OtherError struct{ Err error }

func (e *OtherError) Error() string {
	return "no conversion of this original makes such a model: " + e.Err.Error()
}

func (e *OtherError) Unwrap() error { return e.Err }

// Subject returns model.OfPair.
func (e *OtherError) Subject() string { return model.OfPair }

// Checked says what a Checker has checked.
type Checked struct {
	Units   int `json:"units"`      // in DF11
	BF16    int `json:"units_bf16"` // stored unchanged
	Tensors int `json:"tensors"`    // copied ones
	// Unfilled has the reason for each module whose weights no known reader fills in.
	Unfilled []string `json:"unfilled,omitempty"`
	Files
	Warnings []string `json:"warnings,omitempty"`
}

// Checked returns what was checked so far.
func (c *Checker) Checked() Checked {
	r := c.found
	r.Beside, r.NotCompared = append([]OtherFile{}, r.Beside...), slices.Clone(r.NotCompared)
	named := map[string]bool{}
	for _, o := range r.Beside {
		named[o.Path] = true
	}
	for _, name := range c.lost {
		if !named[name] {
			r.Beside = append(r.Beside, OtherFile{name, Missing})
		}
	}
	if c.manifestDiffers {
		r.Beside = append(r.Beside, OtherFile{names.Manifest, Changed})
		r.NotCompared = slices.DeleteFunc(r.NotCompared,
			func(name string) bool { return name == names.Manifest })
	}
	slices.SortFunc(r.Beside, func(a, b OtherFile) int { return cmp.Compare(a.Path, b.Path) })
	slices.Sort(r.NotCompared)
	return r
}

// UnitSizes are the numbers of weights of each attribute of a model's decodable units, by path.
type UnitSizes map[string][]int64

// Structure checks the model alone: a loader must find it, and every unit must be decodable. It
// uses only the layout of the original.
func (c *Checker) Structure(ctx context.Context) (UnitSizes, error) {
	if why := c.lacks(c.Layout()); why != "" {
		return nil, model.Invalidf("", "%s", why)
	}
	units := UnitSizes{}
	for _, path := range c.DF11.CodedUnits() {
		sizes, err := c.openUnit(ctx, path)
		if err != nil {
			return nil, fmt.Errorf("module %s: %w", path, err)
		}
		units[path] = sizes
	}
	problems, err := c.DF11.ProblemsAlone(ctx)
	if err != nil || len(problems) == 0 {
		return units, err
	}
	return nil, model.Invalidf("", "%s: %s: it would load wrongly", problems[0].Name,
		problems[0].Detail)
}

// Fits checks that the model, whose units have these sizes, holds exactly what the plan of the
// original says.
func (c *Checker) Fits(units UnitSizes) error {
	if c.Plan == nil {
		return &OtherError{c.Refused}
	}
	if err := c.placed(); err != nil {
		return err
	}
	if err := c.checkEmpty(); err != nil {
		return err
	}
	c.found.Unfilled = c.Plan.Unfilled
	outputs, err := spans.Outputs(c.Plan)
	if err != nil {
		return err
	}
	narrowed := 0
	for _, o := range outputs {
		for _, u := range o.Units {
			if sizes, coded := units[u.Path]; !coded {
				c.found.BF16++
			} else if !slices.Equal(sizes, u.Sizes()) {
				return &DifferentError{"module " + u.Path,
					"split_positions are not those of the original's tensors"}
			}
		}
		for t := range o.Tensors() {
			if t.ExactF32 {
				narrowed++
			}
		}
		c.found.Tensors += len(o.Copied)
	}
	if problems := c.DF11.Problems(c.Plan); len(problems) > 0 {
		return &DifferentError{problems[0].Name, problems[0].Detail}
	}
	if narrowed > 0 {
		c.Warn("%d tensors are F32 in the original and BF16 here", narrowed)
	}
	return nil
}

// CountTensors counts the tensors that are part of no compressed module, if no original says how
// many were copied.
func (c *Checker) CountTensors() {
	for _, name := range c.DF11.Tensors() {
		leaf := catalog.Leaf(name)
		unit := strings.TrimSuffix(name, "."+leaf)
		if !slices.Contains(verify.ArrayNames(), leaf) || !c.DF11.Coded(unit) {
			c.found.Tensors++
		}
	}
}

// Warn adds a warning.
func (c *Checker) Warn(format string, args ...any) {
	c.found.Warnings = append(c.found.Warnings, human.Message(format, args...))
}

// lacks says what a loader of a layout misses: the official loader looks for dfloat11_config, and
// treats a model without it as uncompressed. ComfyUI looks for one file. "" means nothing is
// missing, or the layout is unknown.
func (c *Checker) lacks(layout catalog.Layout) string {
	switch files := len(c.DF11.WeightFiles()); {
	case layout == catalog.ComfyUI && files != 1:
		return fmt.Sprintf("a model for ComfyUI is one .safetensors file, not %d", files)
	case layout != "" && layout != catalog.ComfyUI && c.DF11.Dict == nil:
		return names.Config +
			": missing: without its dfloat11_config no loader recognizes a DF11 model"
	}
	return ""
}

// placed checks that loaders of the original's layout find the model as the component that it is.
func (c *Checker) placed() error {
	component := path.Dir(c.Model.Listing.Weights[0].Path)
	if c.DF11.Dir != "" && c.ofPipeline() && component != c.DF11.Dir {
		return &DifferentError{"the modules are in " + c.DF11.Dir,
			"a loader reads them as that component, not as " + component}
	}
	return nil
}

// checkEmpty refuses an empty weight file that the plan doesn't have, because no check of tensors
// would find it.
func (c *Checker) checkEmpty() error {
	files := slices.Concat(c.Plan.OutputFiles, c.asNamed().RemainderFiles)
	for _, w := range c.DF11.WeightFiles() {
		planned := func(o plan.OutputFile) bool { return path.Base(o.Path) == path.Base(w.Path) }
		if len(w.Header.Tensors) == 0 && !slices.ContainsFunc(files, planned) {
			return model.Invalidf(w.Path, "it doesn't belong to the model, but a loader reads it")
		}
	}
	return nil
}

// openUnit checks the arrays of a unit, and returns the sizes of its attributes. It warns of wrong
// bytes that no decoder reads.
func (c *Checker) openUnit(ctx context.Context, path string) (sizes []int64, err error) {
	var unread *verify.StructureError
	err = twice(ctx, c.DF11, func() error {
		opened, err := c.DF11.OpenAlone(ctx, path)
		if err == nil {
			sizes = opened.Sizes()
			unread, err = opened.CheckUnread()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if unread != nil {
		c.Warn("%s: %v", path, unread)
	}
	c.found.Units++
	return sizes, nil
}
