package plan

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// renamePaths turns the source's names into the module paths of the class that loads the output, where the catalog
// says that they differ. All tensors are renamed, not only those of units.
func (d *draft) renamePaths() error {
	if d.entry == nil || len(d.entry.PathRename) == 0 {
		return nil
	}
	rules, err := compileRules(d.entry.PathRename)
	if err != nil {
		return err
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
	return d.inv.rebuild()
}

// renameRule rewrites names that a regex matches at their start.
type renameRule struct {
	re *regexp.Regexp
	to string
}

// compileRules compiles the rules of an entry.
func compileRules(pairs [][2]string) ([]renameRule, error) {
	rules := make([]renameRule, len(pairs))
	for i, pair := range pairs {
		re, err := regexp.Compile(pair[0])
		if err != nil {
			return nil, fmt.Errorf("catalog: path_rename: %w", err)
		}
		rules[i] = renameRule{re, pair[1]}
	}
	return rules, nil
}

// rename applies the first rule that matches. A name that already has the target form of some rule stays.
func rename(rules []renameRule, name string) string {
	for _, r := range rules {
		m := r.re.FindString(name)
		if strings.HasPrefix(name, r.to) && len(r.to) > len(m) {
			return name
		}
	}
	for _, r := range rules {
		if m := r.re.FindStringIndex(name); m != nil && m[0] == 0 {
			return r.to + name[m[1]:]
		}
	}
	return name
}

// comfyPrefixes are what full checkpoints put before the diffusion model's names. ComfyUI's loaders want names without them.
var comfyPrefixes = []string{"model.diffusion_model.", "diffusion_model."}

// stripComfyPrefix gives the tensors of a single file the names of ComfyUI's model: it removes the prefix and leaves out
// the other models of a full checkpoint (text encoders, VAE), which the node does not load.
func (d *draft) stripComfyPrefix() error {
	if d.survey.Layout != ComfyUI {
		return nil
	}
	i := slices.IndexFunc(comfyPrefixes, d.inv.holdsPrefix)
	if i < 0 {
		return nil
	}
	var kept []Tensor
	var dropped []string
	for _, t := range d.inv.tensors {
		name, ok := strings.CutPrefix(t.Name, comfyPrefixes[i])
		if !ok {
			d.plan.Dropped = append(d.plan.Dropped, t)
			dropped = append(dropped, t.Name)
			continue
		}
		t.Name = name
		kept = append(kept, t)
	}
	d.inv.tensors = kept
	d.plan.Renamed = true
	if len(dropped) > 0 {
		d.plan.warn(WarnDropped, dropped, "%s outside the diffusion model left out: keep the source for text encoders and VAE",
			count(len(dropped), "tensor"))
	}
	return d.inv.rebuild()
}
