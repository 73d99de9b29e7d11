package plan

import (
	"cmp"
	"fmt"
)

// New makes the plan of a conversion. It returns a *RefusedError if the source cannot be converted as asked, and any
// other error only for input that no caller should build.
func New(src Source, opt Options) (*Plan, error) {
	p, err := newPlanner(src, opt)
	if err != nil {
		return nil, err
	}
	for _, step := range []func() error{
		p.refuseForeignFormats, // quantized, DF11 already
		p.takeTensors,          // every tensor of every shard, checked against the index
		p.choosePatterns,       // given, by name, from the catalogue, or derived
		p.renamePaths,          // Hub names → module paths
		p.decideTies,           // head and embedding: one matrix or two
		p.settlePatterns,       // templates, tied form, split
		p.formUnits,            // modules, attributes, siblings
		p.checkStacks,          // blocks that are missing
		p.markUnholdable,       // what headers show DF11 cannot hold
		p.placeOutputs,         // every tensor in exactly one output file
		p.placeFiles,           // config, copied files, what stays behind
		p.comment,              // warnings, differences, readers
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return p.plan, nil
}

// planner holds what the steps of New hand to each other.
type planner struct {
	src    Source
	opt    Options
	survey *Survey
	cfg    *config
	inv    *inventory
	entry  *Entry // nil for a dict that was given or derived
	plan   *Plan

	ties     []tie    // pairs of names that the model shares
	unlisted []string // tensors that the index leaves out
}

// newPlanner surveys the source again and checks that the caller brought what the survey asks for.
func newPlanner(src Source, opt Options) (*planner, error) {
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
	cfg, err := readConfig(src.Config)
	if err != nil {
		return nil, err
	}
	if opt.Catalogue == nil {
		if opt.Catalogue, err = Embedded(); err != nil {
			return nil, err
		}
	}
	return &planner{src: src, opt: opt, survey: survey, cfg: cfg, plan: &Plan{source: src}}, nil
}

// warn adds a warning about the named tensors or files.
func (p *planner) warn(code WarningCode, names []string, format string, args ...any) {
	p.plan.Warnings = append(p.plan.Warnings, Warning{Code: code, Text: fmt.Sprintf(format, args...), Names: names})
}

// differ notes a difference to what the official route would write.
func (p *planner) differ(format string, args ...any) {
	p.plan.Differences = append(p.plan.Differences, fmt.Sprintf(format, args...))
}

// takeTensors lists the source's tensors and compares them with the index.
func (p *planner) takeTensors() error {
	inv, err := takeInventory(p.src.Weights)
	if err != nil {
		return err
	}
	p.inv = inv
	p.unlisted, err = inv.checkIndex(p.survey, p.src.Index, p.src.Weights)
	if err != nil {
		return err
	}
	if len(p.unlisted) > 0 {
		p.warn(WarnIndex, p.unlisted, "the index does not list %s that its files hold; they are kept",
			count(len(p.unlisted), "tensor"))
	}
	if err := p.refuseForeignTensors(); err != nil {
		return err
	}
	if err := p.refuseAdapter(); err != nil {
		return err
	}
	return p.stripComfyPrefix()
}

// formUnits matches modules and gives every unit its tensors; what is left is the remainder.
func (p *planner) formUnits() error {
	units, err := matchUnits(p.plan.PatternDict, p.inv.allModules())
	if err != nil {
		return p.explainUnmatched(err)
	}
	below := groupByUnit(units, p.inv.tensors)
	for i := range units {
		if err := p.fillUnit(&units[i], below[units[i].Path]); err != nil {
			return err
		}
	}
	p.plan.Units = units
	p.plan.Remainder = below[""]
	return nil
}

// groupByUnit sorts tensors under the unit they lie in; those of no unit are listed under "".
func groupByUnit(units []Unit, tensors []Tensor) map[string][]Tensor {
	isUnit := map[string]bool{}
	for _, u := range units {
		isUnit[u.Path] = true
	}
	groups := map[string][]Tensor{}
	for _, t := range tensors {
		p := parent(t.Name)
		for p != "" && !isUnit[p] {
			p = parent(p)
		}
		groups[p] = append(groups[p], t)
	}
	return groups
}
