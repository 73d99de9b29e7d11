package back

import (
	"bytes"
	"context"
	"errors"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/reader"
	"github.com/df11-convert/df11-convert/internal/streams"
)

// To know what a DF11 model has to hold, this file plans its original again. The model's
// config.json states the pattern dict. It doesn't state how the source's names became the output's,
// which tensors stand for others, or which file of the source was converted. The manifest and the
// catalog have hints at these, but no evidence: whatever the plan is, it covers each tensor of the
// source, and the bits of each are compared.

// OriginalOptions completes the options for opening the original of d. It takes layout and dict
// from d, and the weight file or the pipeline's component from d's manifest. A copy of the original
// may have its files elsewhere, and an original may have two sets of weights, so the caller tries
// the options in order until the original opens. If none does, the first error counts.
func OriginalOptions(d *model.DF11, opt plan.Options) []plan.Options {
	if opt.PatternDict == nil {
		opt.PatternDict = d.Dict
	}
	if opt.Layout == "" {
		opt.Layout = catalog.Layout(d.Layout())
	}
	opt.Unfilled = true // the model itself shows which modules are units
	named := opt
	if named.WeightFile == "" && named.Component == "" {
		named.WeightFile, named.Component = sourcePlace(d)
	}
	all := []plan.Options{named, opt}
	if reading := readingOf(d); opt.WeightFile == "" && reading != "" {
		named.WeightFile = reading
		all = append(all, named)
	}
	return all
}

// readingOf returns the weight file of the source by the manifest, or else the index of its files,
// or "". It's needed if the source has both.
func readingOf(d *model.DF11) string {
	if d.Manifest == nil || len(d.Manifest.Source.Files) == 0 {
		return ""
	}
	files := d.Manifest.Source.Files
	if d.Manifest.Source.Arranged != "" {
		return "" // the file that is made of them has no name of its own
	}
	shard, isShard := reader.ShardOf(files[0].Path)
	if len(files) > 1 && isShard {
		return shard.Stem + ".safetensors.index.json"
	}
	return files[0].Path
}

// sourcePlace returns where the manifest says that the source's weights are, if that's unusual:
// their one file, or the folder of a pipeline. If the model lies in a pipeline's folder, that is
// the component.
func sourcePlace(d *model.DF11) (weightFile, component string) {
	if d.Dir != "" || d.Manifest == nil {
		return "", d.Dir
	}
	id := d.Manifest.Identity()
	if catalog.Layout(d.Layout()).Family() == catalog.Diffusers || d.Manifest.Source.Arranged != "" {
		component = id.Folder
	}
	return id.File, component
}

// PlanOriginal plans the original of d with the dict of d. A RefusedError means that no conversion
// of the original has that dict. A model that ComfyUI's node loads is planned by the node's own
// dict, whatever layout the manifest states. Without --like, names and ties come from the
// manifest's entry if it fits the source, or else from the entry that fits best. F32 that is exact
// BF16 may be stored as BF16; the comparison shows whether it is.
func PlanOriginal(ctx context.Context, d *model.DF11, src plan.Source,
	opt plan.Options) (*plan.Plan, error) {
	if src.WeightFile != "" {
		opt.WeightFile = src.WeightFile
	}
	if nodeLoads(ctx, src, opt) {
		opt.Layout = ""
	}
	if opt.Like == "" {
		opt.Finished = true
		if m := d.Manifest; m != nil {
			opt.Like, opt.Finished = m.Plan.Entry, m.Plan.Entry != ""
		}
	}
	if opt.PatternDict != nil {
		opt.ExactF32 = true
		return plan.New(ctx, src, opt)
	}
	// config.json is damaged: the dict is the original's own
	p, err := plan.New(ctx, src, opt)
	if r, ok := errors.AsType[*plan.RefusedError](err); ok && r.Next == "exact_f32" {
		opt.ExactF32 = true
		p, err = plan.New(ctx, src, opt)
	}
	return p, err
}

// nodeLoads reports whether ComfyUI's node has a dict for a source that is to be planned in another
// layout than ComfyUI's.
func nodeLoads(ctx context.Context, src plan.Source, opt plan.Options) bool {
	stated := opt.Layout
	opt.Layout = ""
	s, err := plan.Look(src.Files, opt)
	if stated == "" || stated == catalog.ComfyUI || err != nil || s.Layout != catalog.ComfyUI {
		return false // the plan in the stated layout says what is wrong
	}
	ids, err := plan.Fitting(ctx, src, opt)
	return err == nil && len(ids) > 0 && catalog.Find(ids[0]).NodeLoads()
}

// Bounds of a sample of a pair.
const (
	sampleTensors = 8
	sampleBytes   = 4096 // of each, at most
)

// Samples compares the beginnings of a few copied tensors with the original's, and returns how many
// of them are the same. They show which of several components a model is, if all have the same
// class and shapes.
func (p Pair) Samples(ctx context.Context) (same, of int, err error) {
	var plain []plan.Tensor
	for _, u := range p.Plan.Units {
		plain = append(plain, u.Siblings...)
	}
	for _, t := range append(plain, p.Plan.Remainder...) {
		s, ok := p.DF11.Section(t.Name)
		n := min(t.Length, sampleBytes)
		if !ok || t.ExactF32 || n == 0 || s.Size() < n || of == sampleTensors {
			continue
		}
		want, got := make([]byte, n), make([]byte, n)
		err := p.Source.ReadRange(ctx, t.File, want, t.Offset)
		if err == nil {
			err = streams.ReadFull(s, got, 0)
		}
		if err != nil {
			return same, of, err
		}
		if of++; bytes.Equal(got, want) {
			same++
		}
	}
	return same, of, nil
}
