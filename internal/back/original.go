package back

import (
	"cmp"
	"context"
	"slices"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
)

// To know what a DF11 model has to hold, this file plans its original again. The model's config.json
// states the pattern dict. It does not state how the source's names became the output's, which
// tensors stand for others, or which file of the source was converted. The manifest and the catalog
// have hints at these, but no evidence: whatever the plan is, it covers each tensor of the source,
// and the bits of each are compared.

// OriginalOptions completes the options for opening the original of d. It takes layout and dict
// from d, and the weight file or the pipeline's component from d's manifest. A copy of the original
// may have its files elsewhere, so the caller tries the options in order until the original opens.
func OriginalOptions(d *model.DF11, opt plan.Options) []plan.Options {
	if opt.PatternDict == nil {
		opt.PatternDict = d.Dict
	}
	if opt.Layout == "" {
		opt.Layout = catalog.Layout(d.Layout())
	}
	opt.Unfilled = true // the model shows its structure
	named := opt
	if named.WeightFile == "" && named.Component == "" {
		named.WeightFile, named.Component = sourcePlace(d)
	}
	if named.WeightFile == opt.WeightFile && named.Component == opt.Component {
		return []plan.Options{opt}
	}
	return []plan.Options{named, opt}
}

// sourcePlace returns the place of the source's weights by the manifest, if it's unusual: their one
// file, or the folder of a pipeline. If the model lies in a pipeline's folder, that is the
// component.
func sourcePlace(d *model.DF11) (weightFile, component string) {
	if d.Dir != "" || d.Manifest == nil {
		return "", d.Dir
	}
	id := d.Manifest.Identity()
	if catalog.Layout(d.Layout()).Family() == catalog.Diffusers {
		component = id.Folder
	}
	return id.File, component
}

// PlanOriginal plans the original of d. It tries the plans that the catalog and the manifest
// suggest, and takes the plan that agrees best with the headers and the config of d. A model that
// ComfyUI's node loads is planned by the node's own dict, whatever layout the manifest states.
func PlanOriginal(ctx context.Context, d *model.DF11, src plan.Source,
	opt plan.Options) (*plan.Plan, error) {
	own := opt
	own.Layout, own.ExactF32 = "", true
	if p, err := plan.New(ctx, src, own); err == nil && p.ByNode {
		opt.Layout = ""
	}
	attempts, err := candidates(ctx, d, src, opt)
	if err != nil {
		return nil, err
	}
	var best *plan.Plan
	var refused error
	fewest := 0
	for _, c := range attempts {
		p, err := plan.New(ctx, src, c)
		if err != nil {
			refused = cmp.Or(refused, err)
			continue
		}
		if n := len(d.Problems(p)); best == nil || n < fewest {
			best, fewest = p, n
		}
		if fewest == 0 {
			break
		}
	}
	if best == nil {
		return nil, refused
	}
	return best, nil
}

// candidates lists the options of the plans with which d may have been made, the likeliest first:
// the source's names may have become those of the manifest's entry, may have stayed, or may have
// become those of the catalog's choice. They never became those of an entry that doesn't fit the
// source: a loader finds a tensor by its name. F32 that is exact BF16 may be stored as
// BF16; the comparison shows whether it is.
func candidates(ctx context.Context, d *model.DF11, src plan.Source,
	opt plan.Options) ([]plan.Options, error) {
	if src.WeightFile != "" {
		opt.WeightFile = src.WeightFile
	}
	entries := []string{opt.Like}
	if opt.Like == "" {
		fitting, err := plan.Fitting(ctx, src, opt)
		if err != nil {
			return nil, err
		}
		entries = append(entries, fitting[:min(1, len(fitting))]...)
		if m := d.Manifest; m != nil && slices.Contains(fitting, m.Plan.Entry) {
			entries = slices.Insert(entries, 0, m.Plan.Entry)
		}
	}
	var out []plan.Options
	for _, e := range entries {
		c := opt
		c.Like = e
		if c.PatternDict == nil {
			out = append(out, c)
		}
		c.ExactF32 = true
		out = append(out, c)
	}
	return out, nil
}
