package budget

import (
	"github.com/df11-convert/df11-convert/internal/hubrules"
	"github.com/df11-convert/df11-convert/internal/plan"
)

// HubProblems returns what the Hub would refuse about the files of a result, and what it advises
// against. sizes are those of the output files in the plan's order.
func HubProblems(p *plan.Plan, sizes []int64) (refused, advised []hubrules.Problem) {
	var files []hubrules.File
	for i, o := range p.OutputFiles {
		files = append(files, hubrules.File{Path: o.Path, Size: sizes[i]})
	}
	for _, f := range p.AllCopied() {
		files = append(files, hubrules.File{Path: f.Path, Size: f.Size})
	}
	return hubrules.CheckFiles(files)
}
