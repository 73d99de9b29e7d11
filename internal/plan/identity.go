package plan

import (
	"cmp"
	"path"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/reader"
)

// An Identity identifies a source, and the result that a conversion makes of it. A conversion of
// another commit of the source is an update of the same result.
type Identity struct {
	Source string         `json:"source,omitempty"` // Hub repo of the weights; "" if it isn't known
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
	var weights []string
	for _, w := range p.source.Weights {
		weights = append(weights, w.Path)
	}
	return NewIdentity(source, p.Layout, weights, DictDigest(p.PatternDict))
}

// DictDigest returns the SHA-256, in hexadecimal, of a pattern dict.
func DictDigest(d catalog.PatternDict) string { return digest(d) }

// Unlike describes the result to a run that makes another: by its source, or as another conversion of
// the same source. It returns "" if the other's source is known and its own isn't.
func (id Identity) Unlike(other Identity) string {
	if id.Source != other.Source {
		return id.Source
	}
	return cmp.Or(id.Source, "a local model") + " (other weights, layout, or pattern dict)"
}
