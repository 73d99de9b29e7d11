package plan

import (
	"cmp"
	"path"
	"slices"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/reader"
)

// An Identity says what a journal or a manifest knows about its result. An empty member isn't
// known, because an older program didn't write it. A journal without a layout knows only the
// source.
type Identity struct {
	Source string         `json:"source,omitempty"` // Hub repo of the weights
	Layout catalog.Layout `json:"layout,omitempty"`
	// Folder of the weights in the source. If the repo holds several models, File is this one's.
	Folder string `json:"folder,omitempty"`
	File   string `json:"file,omitempty"`
	Dict   string `json:"pattern_dict,omitempty"` // sha256 of the pattern dict
}

// NewIdentity returns the identity of a result by the paths of its source's weight files, and the
// SHA-256 of its pattern dict.
func NewIdentity(source string, layout catalog.Layout, weights []string, dict string) Identity {
	id := Identity{Source: source, Layout: layout, Dict: dict}
	switch {
	case len(weights) == 1 && !reader.IsUsual(weights[0]):
		id.File = weights[0]
	case len(weights) > 0 && path.Dir(weights[0]) != ".":
		id.Folder = path.Dir(weights[0])
	}
	return id
}

// IdentityOf returns the identity of a plan's result. source is the Hub repo of the weights, or ""
// if it isn't known.
func IdentityOf(p *Plan, source string) Identity {
	weights := p.source.Of
	if weights == nil {
		for _, w := range p.source.Weights {
			weights = append(weights, w.Path)
		}
	}
	return NewIdentity(source, p.Layout, weights, DictDigest(p.PatternDict))
}

// DictDigest returns the SHA-256, in hexadecimal, of a pattern dict.
func DictDigest(d catalog.PatternDict) string { return digest(d) }

// Contradicts reports whether two identities are of different results, whatever the source is
// called and at whatever commit it is. A member that either of them lacks is no difference.
func (id Identity) Contradicts(other Identity) bool {
	if id.Layout == "" || other.Layout == "" {
		return false
	}
	return id.Layout != other.Layout || id.Folder != other.Folder || id.File != other.File ||
		id.Dict != "" && other.Dict != "" && id.Dict != other.Dict
}

// Unlike describes the result to a run that makes another: by its source, or by what differs from the
// other conversion of the same source. It returns "" if the other's source is known and its own isn't.
func (id Identity) Unlike(other Identity) string {
	if id.Source != other.Source {
		return id.Source
	}
	return cmp.Or(id.Source, "a local model") + " (" + id.difference(other) + ")"
}

// difference says what the result has that another result of the same source lacks.
func (id Identity) difference(other Identity) string {
	switch {
	case id.Layout == "" || other.Layout == "":
		return "other weights, layout, or pattern dict"
	case id.Layout != other.Layout:
		return "in the layout " + string(id.Layout)
	case id.Folder != other.Folder:
		return "of " + cmp.Or(id.Folder, "the top folder")
	case id.File != other.File:
		return "of " + cmp.Or(id.File, "the usual weight files")
	case id.Dict != "" && other.Dict != "" && id.Dict != other.Dict:
		return "with another pattern dict"
	}
	return "other weights"
}

// OutputSources returns, by path, which weight files of the source each output file is made from.
func (p *Plan) OutputSources() map[string][]int {
	all := map[string][]int{}
	for _, f := range p.OutputFiles {
		var files []int
		add := func(tensors []Tensor) {
			for _, t := range tensors {
				files = append(files, t.File)
			}
		}
		add(f.Plain)
		for _, i := range f.Units {
			add(p.Units[i].Attrs)
			add(p.Units[i].Siblings)
		}
		slices.Sort(files)
		all[f.Path] = slices.Compact(files)
	}
	return all
}
