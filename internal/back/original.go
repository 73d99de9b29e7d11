package back

import (
	"cmp"
	"context"
	"path"
	"slices"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
)

// The original of a DF11 model is planned anew, to know what the model has to hold. The model's
// config.json states the pattern dict. It does not state how the source's names became the
// output's, which tensors were taken for others, or which file of the source was converted.
// Manifest and catalog have these as hints, never as evidence: whatever the plan, each tensor of
// the source has its place in it, and its bits are compared.

// OriginalOptions completes the options with which the original of d is opened: layout and dict
// come from d itself, and the file or the pipeline's component from its manifest. A copy of the
// original may have its files elsewhere than the manifest says, so the caller tries the options in
// order until the original opens.
func OriginalOptions(d *model.DF11, opt plan.Options) []plan.Options {
	if opt.PatternDict == nil {
		opt.PatternDict = d.Dict
	}
	if opt.Layout == "" {
		opt.Layout = catalog.Layout(d.Layout())
	}
	named := opt
	if named.WeightFile == "" && named.Component == "" {
		named.WeightFile, named.Component = sourcePlace(d)
	}
	if named.WeightFile == opt.WeightFile && named.Component == opt.Component {
		return []plan.Options{opt}
	}
	return []plan.Options{named, opt}
}

// sourcePlace is where the manifest says that the source's weights are, if that is not the usual
// place: their one file, or the folder of a pipeline. A model in a folder of a pipeline is that
// component.
func sourcePlace(d *model.DF11) (weightFile, component string) {
	if d.Dir != "" {
		return "", d.Dir
	}
	if d.Manifest == nil || len(d.Manifest.Source.Files) == 0 {
		return "", ""
	}
	files := d.Manifest.Source.Files
	dir, base := path.Dir(files[0].Path), path.Base(files[0].Path)
	_, shard := plan.ShardOf(base)
	usual := base == names.Weights || base == "diffusion_pytorch_model.safetensors"
	if len(files) == 1 && !usual && !shard {
		return files[0].Path, ""
	}
	if layout := catalog.Layout(d.Layout()); dir != "." &&
		(layout == catalog.Diffusers || layout == catalog.DiffusersSingle) {
		return "", dir
	}
	return "", ""
}

// PlanOriginal plans the original of d. Of the plans that the catalog and the manifest suggest, it
// takes the one with which the headers and the config of d agree best.
func PlanOriginal(ctx context.Context, d *model.DF11, src plan.Source,
	opt plan.Options) (*plan.Plan, error) {
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

// candidates lists the options of the plans with which d may have been made, the likeliest first. A
// source's names may have become those of a catalog entry that fits it, never of any other: a
// loader finds a tensor by its name. F32 that is exact BF16 may be stored as such, which shows in
// the comparison.
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
		entries = likelyEntries(d, fitting)
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

// likelyEntries puts the entries that a source fits, best first, and "" for no entry, into the
// order in which they are tried: first the manifest's. A model without a manifest has its source's
// names more often than not.
func likelyEntries(d *model.DF11, fitting []string) []string {
	best := slices.Clone(fitting[:min(1, len(fitting))])
	if d.Manifest == nil || d.Manifest.Plan.Entry == "" {
		return append([]string{""}, best...)
	}
	if e := d.Manifest.Plan.Entry; slices.Contains(fitting, e) && !slices.Contains(best, e) {
		best = slices.Insert(best, 0, e)
	}
	return append(best, "")
}
