package plan

import (
	"cmp"
	"fmt"
)

// New makes the plan of a conversion. It returns a *RefusedError if the source cannot be converted as asked, and any
// other error only for input that no caller should build.
func New(src Source, opt Options) (*Plan, error) {
	d, err := newDraft(src, opt)
	if err != nil {
		return nil, err
	}
	for _, step := range []func() error{
		d.cfg.refuseForeign,          // quantized, DF11 already
		d.takeTensors,                // every tensor of every file, checked against the index
		chooser{d}.choose,            // pattern dict: given, by name, from the catalog, or derived
		d.renamePaths,                // Hub names → module paths
		tieResolver{d}.resolve,       // head and embedding: one matrix or two
		expander{d}.settle,           // pattern dict: templates, tied form, split
		matcher{d}.formUnits,         // modules, attributes, siblings
		d.plan.checkCounts,           // of units and tensors
		d.plan.checkStoredNames,      // of plain tensors
		stackChecker{draft: d}.check, // blocks that are missing
		d.plan.markUnholdable,        // units that headers show DF11 cannot hold
		layouter{d.plan}.place,       // every tensor in exactly one output file
		fileSorter{d}.sort,           // config, copied files, skipped files
		commenter{d}.comment,         // warnings, differences, readers
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return d.plan, nil
}

// draft is a plan in the making: the source with everything known about it, and what the steps of New have decided.
type draft struct {
	src    Source
	opt    Options
	survey *Survey
	cfg    *config
	inv    *inventory
	entry  *Entry // nil for a dict that was given or derived
	ties   []tie  // pairs of names that the model shares
	plan   *Plan

	foreign string // class that the source states although its names are not that class's; "" if all fits
}

// newDraft surveys the source again and checks that the caller brought what the survey asks for.
func newDraft(src Source, opt Options) (*draft, error) {
	opt.WeightFile = cmp.Or(opt.WeightFile, src.WeightFile)
	survey, err := Look(src.Files, opt)
	if err != nil {
		return nil, err
	}
	want, err := survey.WeightFiles(src.Index)
	if err != nil {
		return nil, err
	}
	if len(want) != len(src.Weights) {
		return nil, fmt.Errorf("plan: %d weight files given, the survey names %d", len(src.Weights), len(want))
	}
	for i, w := range want {
		if src.Weights[i].Path != w.Path || src.Weights[i].Header == nil {
			return nil, fmt.Errorf("plan: weight file %d is %q, want %q with a header", i, src.Weights[i].Path, w.Path)
		}
	}
	cfg, err := readConfig(survey.Config, src.Config)
	if err != nil {
		return nil, err
	}
	return &draft{src: src, opt: opt, survey: survey, cfg: cfg, plan: &Plan{source: src}}, nil
}

// takeTensors lists the source's tensors and compares them with the index.
func (d *draft) takeTensors() (err error) {
	if d.inv, err = takeInventory(d.src.Weights); err != nil {
		return err
	}
	unlisted, err := d.inv.checkIndex(d.survey, d.src)
	if err != nil {
		return err
	}
	if unlisted > 0 {
		d.plan.warn("the index does not list %s that its files hold; they are kept", count(unlisted, "tensor"))
	}
	if err := d.inv.refusePacked(); err != nil {
		return err
	}
	if err := d.inv.refuseAdapter(); err != nil {
		return err
	}
	return d.stripComfyPrefix()
}
