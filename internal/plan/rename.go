package plan

import (
	"cmp"
	"context"
	_ "embed" // the tables of facts
	"iter"
	"slices"
	"strings"
)

// pathsText is what testdata/classes/paths.py found in transformers: a class and a fact about its
// names in each line. The script says which facts there are.
//
//go:embed catalog/paths.txt
var pathsText string

// readsText is what testdata/classes/reads.py found in transformers and diffusers: "class weight
// reader method" in each line. A line that begins with ? is a read that the script could not
// follow, for people to look at.
//
//go:embed catalog/reads.txt
var readsText string

// facts is what the two tables say of a class. The loader of DF11 knows none of it.
type facts struct {
	// start of a name in a checkpoint, start of the module path; longer starts come first
	renames [][2]string
	// parts of names whose weights version 5 fuses, splits or renames in another way; # is any
	// number
	changes []string
	tied    []string // ends of names of weights that may be another's
	isNew   bool     // only version 5 has the class
	reads   []read
}

// factsOf looks up a class.
func factsOf(class string) (f facts) {
	for line := range linesOf(pathsText, class) {
		switch line[0] {
		case "rename":
			f.renames = append(f.renames, [2]string{line[1], strings.TrimPrefix(line[2], "-")})
		case "change":
			f.changes = append(f.changes, strings.ReplaceAll(line[1], "*", "#"))
		case "tied":
			f.tied = append(f.tied, line[1])
		case "new":
			f.isNew = true
		}
	}
	for line := range linesOf(readsText, class) {
		f.reads = append(f.reads, read{line[0], line[1], line[2]})
	}
	slices.SortFunc(f.renames,
		func(a, b [2]string) int { return cmp.Compare(len(b[0]), len(a[0])) })
	return f
}

// linesOf splits the lines of a table that are about a class into the words behind its name.
func linesOf(table, class string) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		for line := range strings.Lines(table) {
			if rest, ok := strings.CutPrefix(line, class+" "); ok && class != "?" &&
				!yield(strings.Fields(rest)) {
				return
			}
		}
	}
}

// changesSome says whether version 5 makes other weights of some of the source's.
func (f *facts) changesSome(tensors []Tensor) bool {
	return slices.ContainsFunc(tensors, func(t Tensor) bool {
		name := numberless(t.Name)
		return slices.ContainsFunc(f.changes,
			func(part string) bool { return strings.Contains(name, part) })
	})
}

// mayTie says whether the class may share a weight with another one.
func (f *facts) mayTie(name string) bool {
	return slices.ContainsFunc(f.tied,
		func(end string) bool { return strings.HasSuffix("."+name, "."+end) })
}

// readsOutside says whether the class reads the module's weight outside of a unit: then that unit
// may not hold the weight.
func (f *facts) readsOutside(unit, module string) bool {
	path := numberless(module)
	return slices.ContainsFunc(f.reads,
		func(r read) bool { return r.weight == path && r.isOutside(unit) })
}

// read says that a method reads the weight of another module. A DF11 loader fills a unit's weights
// when the unit is called, so a method outside finds no weight (docs/models.md). In paths # stands
// for any number.
type read struct {
	weight string // path of the module with the weight
	reader string // path of the module with the method; "." is the model itself
	method string
}

// isOutside says whether the read may happen while the unit has no weights.
func (r read) isOutside(unit string) bool {
	unit = numberless(unit)
	return r.reader != unit && !strings.HasPrefix(r.reader, unit+".")
}

// numberless writes # for every component of a path that is a number.
func numberless(path string) string {
	parts := strings.Split(path, ".")
	for i, p := range parts {
		if _, ok := number(p); ok {
			parts[i] = "#"
		}
	}
	return strings.Join(parts, ".")
}

// renamePaths gives all tensors the module paths of the class that loads the output: that of the
// entry, else the stated one. It notes a class that has no modules for some of them.
func (d *draft) renamePaths(ctx context.Context) error {
	if d.facts.changesSome(d.inv.tensors) {
		if d.entry == nil {
			d.plan.Loader.Transformers = "<5"
		}
		if d.facts.isNew {
			d.foreign = d.cfg.class()
		}
	}
	rules := d.facts.renames
	if d.entry != nil {
		rules = d.entry.Renames()
	}
	before := d.inv
	d.inv = before.named(ctx, rules, d.plan.PatternDict)
	renamed := 0
	for i, t := range d.inv.tensors {
		if t.Name != before.tensors[i].Name {
			renamed++
		}
	}
	if renamed == 0 {
		return nil
	}
	d.plan.Renamed = true
	d.plan.differ(
		"%s stored under the module paths of current transformers instead of the source's names",
		count(renamed, "tensor"))
	return d.inv.index()
}

// Renames returns what turns the names in the class's checkpoints into module paths: starts of
// names, and what they become.
func (e *Entry) Renames() [][2]string {
	if len(e.Match.Architectures) == 0 {
		return nil
	}
	return factsOf(e.Match.Architectures[0]).renames
}

// named returns the tensors with their names changed by rules, for [inventory.index] to check,
// unless the names fit a dict better as they are.
func (inv *inventory) named(ctx context.Context, rules [][2]string, dict PatternDict) *inventory {
	if len(rules) == 0 {
		return inv
	}
	renamed := &inventory{files: inv.files, tensors: slices.Clone(inv.tensors)}
	for i := range renamed.tensors {
		renamed.tensors[i].Name = rename(rules, renamed.tensors[i].Name)
	}
	if len(dict) > 0 && renamed.nMatching(ctx, dict) <= inv.nMatching(ctx, dict) {
		return inv
	}
	return renamed
}

// nMatching counts the patterns of a dict that match a module.
func (inv *inventory) nMatching(ctx context.Context, dict PatternDict) (n int) {
	for _, p := range dict {
		if modules, err := inv.matching(ctx, p.Regex); err == nil && len(modules) > 0 {
			n++
		}
	}
	return n
}

// rename applies the first of the rules that fits the start of a name. A name stays if some rule
// could have made it.
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

// comfyPrefixes stand before the diffusion model's names in full checkpoints. ComfyUI's loaders
// want names without them.
var comfyPrefixes = []string{"model.diffusion_model.", "diffusion_model."}

// stripComfyPrefix removes the prefix from the names of a single file, and drops the other models
// of a full checkpoint (text encoders, VAE), which the ComfyUI node does not load.
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
		d.plan.warn(
			"%s outside the diffusion model left out: keep the source for text encoders and VAE",
			count(n, "tensor"))
	}
	return d.inv.index()
}
