package plan

import (
	"slices"

	"github.com/df11-convert/df11-convert/internal/names"
)

// SideFiles lists the paths of the files that a conversion writes next to the weights. Together
// with OutputFiles, Copied, and Components, they're all files of the result.
func (p *Plan) SideFiles() (paths []string) {
	if p.RemainderIndex != "" {
		paths = append(paths, p.RemainderIndex)
	}
	paths = append(paths, names.Card)
	if p.HasChart() {
		paths = append(paths, names.Chart)
	}
	return append(paths, names.Manifest, p.ConfigPath())
}

// HasChart reports whether the result gets a picture for its card. It doesn't if the source has a
// file of that name, which comes along.
func (c Carried) HasChart() bool {
	return !slices.ContainsFunc(c.Copied, func(f File) bool { return names.Folded(f.Path) == names.Chart })
}
