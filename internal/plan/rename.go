package plan

import (
	"cmp"
	"context"
	_ "embed" // the table of names
	"slices"
	"strings"
)

// pathsText is what testdata/classes/paths.py found in transformers: a class and a fact about its names in each line. The script
// says which facts there are.
//
//go:embed catalog/paths.txt
var pathsText string

// naming is what transformers makes of the names in a checkpoint of a class. The loader of DF11 knows none of it.
type naming struct {
	renames [][2]string // start of a name, start of the module path
	changes []string    // parts of names whose weights version 5 fuses, splits or renames in another way; # is any number
	tied    []string    // ends of names of weights that may be another's
	isNew   bool        // only version 5 has the class
}

// naming looks up the stated class. Code that comes with the model may define another class of that name.
func (c *config) naming() (n naming) {
	for line := range strings.Lines(pathsText) {
		f := strings.Fields(line)
		if f[0] != c.class() || c.holds("auto_map") {
			continue
		}
		switch f[1] {
		case "rename":
			n.renames = append(n.renames, [2]string{f[2], strings.TrimPrefix(f[3], "-")})
		case "change":
			n.changes = append(n.changes, strings.ReplaceAll(f[2], "*", "#"))
		case "tied":
			n.tied = append(n.tied, f[2])
		case "new":
			n.isNew = true
		}
	}
	slices.SortFunc(n.renames, func(a, b [2]string) int { return cmp.Compare(len(b[0]), len(a[0])) })
	return n
}

// changesSome says whether version 5 makes other weights of some of the source's.
func (n naming) changesSome(tensors []Tensor) bool {
	return slices.ContainsFunc(tensors, func(t Tensor) bool {
		name := numberless(t.Name)
		return slices.ContainsFunc(n.changes, func(part string) bool { return strings.Contains(name, part) })
	})
}

// mayTie says whether the class may share a weight with another one.
func (n naming) mayTie(name string) bool {
	return slices.ContainsFunc(n.tied, func(end string) bool { return strings.HasSuffix("."+name, "."+end) })
}

// renamePaths gives all tensors the module paths of the class that loads the output, where the catalog or the class says that the
// source's names differ. It notes a class that has no modules for some of them.
func (d *draft) renamePaths(ctx context.Context) error {
	if d.names.changesSome(d.inv.tensors) {
		if d.entry == nil {
			d.plan.Loader.Transformers = "<5"
		}
		if d.names.isNew {
			d.foreign = d.cfg.class()
		}
	}
	rules := d.names.renames
	switch {
	case d.entry != nil:
		rules = d.entry.PathRename
	case d.opt.PatternDict != nil && d.inv.fits(ctx, d.opt.PatternDict):
		rules = nil // the dict that was given is for a class with the source's names
	}
	renamed := 0
	for i := range d.inv.tensors {
		t := &d.inv.tensors[i]
		if name := rename(rules, t.Name); name != t.Name {
			t.Name = name
			renamed++
		}
	}
	if renamed == 0 {
		return nil
	}
	d.plan.Renamed = true
	d.plan.differ("%s stored under the module paths of current transformers instead of the source's names", count(renamed, "tensor"))
	return d.inv.index()
}

// fits says whether every pattern of a dict matches a module.
func (inv *inventory) fits(ctx context.Context, dict PatternDict) bool {
	return !slices.ContainsFunc(dict, func(p Pattern) bool {
		modules, err := inv.matching(ctx, p.Regex)
		return err != nil || len(modules) == 0
	})
}

// rename applies the first of the rules that fits the start of a name. A name stays if some rule could have made it.
func rename(rules [][2]string, name string) string {
	for _, r := range rules {
		longer := !strings.HasPrefix(name, r[0]) || len(r[1]) > len(r[0])
		if r[1] != "" && longer && strings.HasPrefix(name, r[1]) {
			return name
		}
	}
	for _, r := range rules {
		if rest, ok := strings.CutPrefix(name, r[0]); ok {
			return r[1] + rest
		}
	}
	return name
}

// comfyPrefixes stand before the diffusion model's names in full checkpoints. ComfyUI's loaders want names without them.
var comfyPrefixes = []string{"model.diffusion_model.", "diffusion_model."}

// stripComfyPrefix removes the prefix from the names of a single file, and drops the other models of a full checkpoint (text
// encoders, VAE), which the ComfyUI node does not load.
func (d *draft) stripComfyPrefix() error {
	if d.survey.Layout != ComfyUI {
		return nil
	}
	i := slices.IndexFunc(comfyPrefixes, d.inv.holdsPrefix)
	if i < 0 {
		return nil
	}
	var kept []Tensor
	for _, t := range d.inv.tensors {
		name, ok := strings.CutPrefix(t.Name, comfyPrefixes[i])
		if !ok {
			d.plan.Dropped = append(d.plan.Dropped, t)
			continue
		}
		t.Name = name
		kept = append(kept, t)
	}
	d.inv.tensors = kept
	d.plan.Renamed = true
	if n := len(d.plan.Dropped); n > 0 {
		d.plan.warn("%s outside the diffusion model left out: keep the source for text encoders and VAE", count(n, "tensor"))
	}
	return d.inv.index()
}
