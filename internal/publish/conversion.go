package publish

import (
	"path"
	"slices"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/reader"
)

// A Conversion is what a run wants its destinations to hold: the result of a plan, made from a
// source.
type Conversion struct {
	From    Origin
	Digest  string            // of the plan
	Digests map[string]string // of everything that decides the bytes of each output, by path
	Part    string            // names the journal
	Force   bool              // allows what is in the way when the run begins
	Memory  int64             // the run's budget, for journals and manifests; 0: no limit
	Ref     string            // of the target, as it was asked for; "" for a folder alone

	identity plan.Identity
	config   string            // path of config.json
	files    map[string]string // the result's files: what pins the content at the source, or ""
	folded   map[string]string // the result's files by [names.Folded]
	folders  map[string]string // a file in each folder of the result, by the same
	loaded   map[string]bool   // folders in which a loader reads every .safetensors file
	sources  map[string][]int  // the weight files that each output is made from
	// what programs from before the first release called outputs, by their present path
	prerelease map[string]plan.OutputID
}

// NewConversion returns what a part of a plan makes of its source.
func NewConversion(p *plan.Plan, from Origin, part string, force bool) *Conversion {
	c := &Conversion{From: from, Digest: p.Digest(), Digests: p.OutputDigests(), Part: part,
		Force: force, identity: plan.IdentityOf(p, from.Repo), config: p.ConfigPath(),
		files: map[string]string{}, folded: map[string]string{}, folders: map[string]string{},
		loaded: map[string]bool{}, sources: p.OutputSources(),
		prerelease: p.PrereleaseOutputs()}
	for _, f := range p.OutputFiles {
		c.files[f.Path] = ""
	}
	for _, name := range p.SideFiles() {
		c.files[name] = ""
	}
	for _, f := range p.AllCopied() {
		if f.Path != p.ConfigPath() {
			c.files[f.Path] = f.ETag
		}
	}
	for name := range c.files {
		c.folded[names.Folded(name)] = name
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			c.folders[names.Folded(dir)] = name
		}
		// ComfyUI loads one file by its name
		if reader.IsSafetensors(name) && p.Layout != catalog.ComfyUI {
			c.loaded[path.Dir(name)] = true
		}
	}
	return c
}

// writes reports whether the result has a file.
func (c *Conversion) writes(name string) bool {
	_, written := c.files[name]
	return written
}

// loads reports whether a loader reads a file as weights of the result.
func (c *Conversion) loads(name string) bool {
	return reader.IsSafetensors(name) && c.loaded[path.Dir(name)]
}

// alike returns the file of the result that can't be next to another file on some systems, because
// they ignore case or because one is a folder of the other; "" if there's none.
func (c *Conversion) alike(name string) string {
	if other := c.folders[names.Folded(name)]; other != "" {
		return other
	}
	for at := name; at != "."; at = path.Dir(at) {
		if other := c.folded[names.Folded(at)]; other != "" && other != name {
			return other
		}
	}
	return ""
}

// Removes lists the files of a destination that a run will remove: they're ours, and the result has
// no file of that name.
func (c *Conversion) Removes(in *Inspection) (gone []string) {
	for _, f := range in.Ours() {
		if !c.writes(f.Path) && !names.IsJournal(f.Path) {
			gone = append(gone, f.Path)
		}
	}
	return gone
}

// held returns the outputs of a claim that a destination has, and that the plan makes from the same
// bytes.
func (c *Conversion) held(claim ledger.Claim, in *Inspection) []ledger.Output {
	return slices.DeleteFunc(claim.Done(c.Digest, c.Digests),
		func(o ledger.Output) bool { return !in.Holds(o.Stored()) })
}
