package plan

import "strings"

// comfyPrefixes are what full checkpoints and some exports put before the names of the diffusion model. The ComfyUI
// loaders want them stripped.
var comfyPrefixes = []string{"model.diffusion_model.", "diffusion_model."}

// stripComfyPrefix brings a single file into the names of ComfyUI's model: the prefix goes, and in a full checkpoint so
// do the tensors of other models (text encoders, VAE), which the node does not load.
func (p *planner) stripComfyPrefix() error {
	prefix := p.comfyPrefix()
	if p.survey.Layout != ComfyUI || prefix == "" {
		return nil
	}
	var kept []Tensor
	var dropped []string
	for _, t := range p.inv.tensors {
		name, ok := strings.CutPrefix(t.Name, prefix)
		if !ok {
			p.plan.Dropped = append(p.plan.Dropped, t)
			dropped = append(dropped, t.Name)
			continue
		}
		t.Name = name
		kept = append(kept, t)
	}
	p.inv.tensors = kept
	p.plan.Renamed = true
	if len(dropped) > 0 {
		p.warn(WarnDropped, dropped, "%s outside the diffusion model left out: keep the source for text encoders and VAE",
			count(len(dropped), "tensor"))
	}
	return p.inv.rebuild()
}

// comfyPrefix returns the prefix that the file uses, or "".
func (p *planner) comfyPrefix() string {
	for _, prefix := range comfyPrefixes {
		for _, t := range p.inv.tensors {
			if strings.HasPrefix(t.Name, prefix) {
				return prefix
			}
		}
	}
	return ""
}
