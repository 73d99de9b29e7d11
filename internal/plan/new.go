package plan

import (
	"cmp"
	"context"
	"errors"
	"slices"
)

// New makes the plan of a conversion. It returns a *RefusedError if the source cannot be converted
// as asked, and any other error only if ctx ends, or for input that no caller should build.
func New(ctx context.Context, src Source, opt Options) (*Plan, error) {
	d, err := newDraft(src, opt)
	if err != nil {
		return nil, err
	}
	p := d.plan
	with := func(step func(context.Context) error) func() error {
		return func() error { return step(ctx) }
	}
	for _, step := range []func() error{
		d.refuseForeign, // refuses a source that is quantized, or DF11 already
		d.takeTensors,   // sets d.inv; for a single file of ComfyUI p.Dropped, p.Renamed
		// sets d.entry, d.foreign, p.Provenance, p.Entry, p.Loader, p.Layout; p.PatternDict, not
		// yet final
		with(d.chooseDict),
		with(d.renamePaths), // sets the names in d.inv, p.Renamed
		d.resolveTies,       // sets p.TiedEmbeddings, p.Aliases; takes copies out of d.inv
		with(d.settleDict),  // sets p.PatternDict, p.Split
		with(d.formUnits),   // sets p.Units, p.Remainder
		p.checkCounts,       // refuses too many units or tensors
		p.checkStoredNames,  // refuses plain tensors with the names of stored arrays
		d.checkStacks,       // refuses missing blocks, or warns of them
		p.markUnholdable,    // sets Unit.Unholdable
		p.placeTensors,      // sets p.OutputFiles, p.RemainderFiles, p.RemainderIndex, Unit.File
		d.sortFiles,         // sets p.Config, p.Copied, p.Components, p.NotCopied
		d.comment,           // sets p.Notes
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// draft is a plan in the making: the source, what is known about it, and what the steps of [New]
// have decided so far.
type draft struct {
	src    Source
	opt    Options
	survey *Survey
	cfg    *config
	facts  facts // of the stated class
	inv    *inventory
	entry  *Entry // nil for a dict that was given or derived
	plan   *Plan

	// class that the source states although its names are not that class's; "" if all fits
	foreign string
}

// newDraft surveys the source again and checks that the caller brought the files that the survey
// asks for.
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
	if !slices.EqualFunc(want, src.Weights,
		func(w File,
			given WeightFile) bool {
			return w.Path == given.Path && given.Header != nil
		}) {
		return nil, errors.New(
			"plan: the headers given are not those of the weight files that the survey names")
	}
	cfg, err := readConfig(survey.Config, src.Config)
	if err != nil {
		return nil, err
	}
	return &draft{src: src, opt: opt, survey: survey, cfg: cfg, facts: cfg.facts(),
		plan: &Plan{source: src}}, nil
}

// takeTensors lists the source's tensors and checks them against the index. It refuses packed
// weights and adapters.
func (d *draft) takeTensors() (err error) {
	if d.inv, err = takeInventory(d.src.Weights); err != nil {
		return err
	}
	unlisted, err := d.inv.checkIndex(d.survey, d.src)
	if err != nil {
		return err
	}
	if unlisted > 0 {
		d.plan.warn("the index does not list %s that its files hold; they are kept",
			count(unlisted, "tensor"))
	}
	if err := d.inv.refusePacked(); err != nil {
		return err
	}
	if err := d.inv.refuseAdapter(); err != nil {
		return err
	}
	return d.stripComfyPrefix()
}
