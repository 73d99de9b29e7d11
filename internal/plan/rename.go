package plan

import (
	"slices"
	"strings"
)

// renamePaths gives all tensors the module paths of the class that loads the output, where the catalog says that the source's
// names differ.
func (d *draft) renamePaths() error {
	if d.entry == nil || len(d.entry.PathRename) == 0 {
		return nil
	}
	renamed := 0
	for i := range d.inv.tensors {
		t := &d.inv.tensors[i]
		if name := d.entry.rename(t.Name); name != t.Name {
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

// rename applies the first of the entry's rules that fits the start of a name. A name stays if some rule could have made it.
func (e *Entry) rename(name string) string {
	for _, r := range e.PathRename {
		longer := !strings.HasPrefix(name, r[0]) || len(r[1]) > len(r[0])
		if r[1] != "" && longer && strings.HasPrefix(name, r[1]) {
			return name
		}
	}
	for _, r := range e.PathRename {
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
