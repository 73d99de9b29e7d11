package pipeline

import (
	"fmt"
	"path"
	"slices"

	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// output is the model as a loader's lint takes it: config and headers.
func (d *DF11) output() plan.Output {
	o := plan.Output{PatternDict: d.Dict}
	for _, name := range d.weightFiles(d.Dir) {
		f := d.files[name]
		o.Files = append(o.Files, plan.WeightFile{File: plan.File{Path: path.Base(name), Size: f.size}, Header: f.header})
	}
	return o
}

// traps are the ways in which headers and config show that the model would load wrongly (docs/format.md §14). How tensors
// are dealt to files is not one: others name and split them as they like.
func (d *DF11) traps(p *plan.Plan) []plan.Problem {
	return slices.DeleteFunc(plan.Check(d.output(), p), func(x plan.Problem) bool { return x.Trap == plan.TrapForeignFile })
}

// lintFile looks for traps in the header of a finished output, as it was stored.
func lintFile(t *task, h *safetensors.Header) error {
	part := &plan.Plan{OutputFiles: []plan.OutputFile{{Path: t.path}}}
	for _, u := range t.units {
		part.Units = append(part.Units, u.Unit)
	}
	for _, p := range t.plain {
		part.Remainder = append(part.Remainder, p.Tensor)
	}
	return trapError(plan.Check(plan.Output{Files: []plan.WeightFile{{File: plan.File{Path: t.path}, Header: h}}}, part))
}

// lintConfig makes sure that the config.json to be published states the dict by which the units were encoded: in another
// order of attributes, weights change places without a word.
func lintConfig(config []byte, p *plan.Plan) error {
	if config == nil {
		return nil
	}
	dict, err := dictOfConfig(config)
	if err != nil {
		return fmt.Errorf("config.json as written: %w", err)
	}
	if !dict.Equal(p.PatternDict) {
		return trapError([]plan.Problem{{Trap: plan.TrapOrder, Name: "config.json", Detail: "its pattern dict is not the one that was encoded"}})
	}
	return nil
}

// trapError is about our own output: whatever it says is a bug.
func trapError(problems []plan.Problem) error {
	if len(problems) == 0 {
		return nil
	}
	x := problems[0]
	return fmt.Errorf("the output would load wrongly (%s): %s: %s; this is a bug", x.Trap, x.Name, x.Detail)
}
