package plan

import (
	"cmp"
	"slices"
	"strings"
)

// Reader says whether one program will load the output.
type Reader struct {
	Name    string  `json:"name"`
	Version string  `json:"version"`
	Loads   Verdict `json:"loads"`
	Why     string  `json:"why,omitempty"` // the rule that fails, or the condition under which it loads
}

// Verdict says whether a program loads something.
type Verdict string

// What can be said of a program and a model.
const (
	Loads    Verdict = "yes"      // models of the same entry were loaded
	Refuses  Verdict = "no"       // a known rule fails
	Untested Verdict = "untested" // no known rule fails, and nobody has tried
)

// verdict is for what no known rule forbids.
func verdict(tried bool) Verdict {
	if tried {
		return Loads
	}
	return Untested
}

// Lint says for every known reader whether it will load what the plan describes (docs/format.md §13, §14).
func (p *Plan) Lint() []Reader {
	official := p.lintOfficial()
	follow := func(name, version, when string) Reader {
		if official.Loads == Refuses {
			return Reader{Name: name, Version: version, Loads: Refuses, Why: official.Why}
		}
		if caveat := p.caveat(); caveat != "" {
			when += "; " + caveat
		}
		return Reader{Name: name, Version: version, Loads: Untested, Why: when}
	}
	return []Reader{
		official,
		p.lintMLX(),
		p.lintComfy(),
		follow("DFloat11-ROCM", "0.5.0 format", "the official loader on AMD"),
		p.lintAuto(follow("DFloat11_MPS", "0.5.0 format", "the official loader on Metal, needs transformers 4")),
		p.lintAuto(follow("vllm-df11", "0.0.1", "one GPU")),
		{Name: "dfloat11_tt", Version: "DF11TT01", Loads: Refuses, Why: "it reads its own bundles, not DF11 folders"},
	}
}

// lintOfficial applies the rules of the official loader.
func (p *Plan) lintOfficial() Reader {
	r := Reader{Name: "dfloat11", Version: "0.5.0", Loads: Refuses}
	switch {
	case p.Layout == ComfyUI:
		r.Why = "a ComfyUI file has no config.json and ComfyUI's names"
	case p.class.foreign != "":
		r.Why = "the tensor names are not the module paths of " + p.class.foreign + ", the class that the source states"
	default:
		r.Loads, r.Why = verdict(p.class.loaded), p.loadCondition()
	}
	return r
}

// loadCondition states with which packages the official loader takes the output.
func (p *Plan) loadCondition() string {
	var parts []string
	if p.Loader.Via == "bfloat16_model=" {
		parts = append(parts, "pass bfloat16_model= of class "+cmp.Or(p.Loader.Class, "unknown"))
	}
	if t := p.Loader.Transformers; t != "" {
		parts = append(parts, "transformers "+t)
	}
	if p.Loader.Remark != "" {
		parts = append(parts, p.Loader.Remark)
	}
	if caveat := p.caveat(); caveat != "" {
		parts = append(parts, caveat)
	}
	return strings.Join(append(parts, "setuptools <81"), "; ")
}

// caveat says what nobody checked about a dict that is not the catalog's; "" for one of the catalog.
func (p *Plan) caveat() string {
	if p.Derived || p.Entry == "" {
		return "module paths not checked against the class"
	}
	return ""
}

// lintAuto adds the rule of readers that build the model from the folder alone: they know no other classes.
func (p *Plan) lintAuto(r Reader) Reader {
	if r.Loads != Refuses && p.Loader.Via != "AutoModelForCausalLM" {
		r.Loads, r.Why = Refuses, "it builds language models of transformers only"
	}
	return r
}

// lintComfy applies the rules of the ComfyUI node: it has its own dict for each class and ignores config.json.
func (p *Plan) lintComfy() Reader {
	r := Reader{Name: "ComfyUI-DFloat11-Extended", Version: "2026", Loads: Refuses}
	switch {
	case p.Layout != ComfyUI:
		r.Why = "it loads single files with ComfyUI's names only"
	case p.class.comfy == "":
		r.Why = "it has no pattern dict for this class"
	default:
		r.Loads, r.Why = verdict(p.class.published), "as class "+p.class.comfy
	}
	return r
}

// lintMLX: mlx-dfloat takes the entries that it has a model for. A test holds their dicts against its grammar of patterns.
func (p *Plan) lintMLX() Reader {
	r := Reader{Name: "mlx-dfloat", Version: "0.2", Loads: Refuses}
	empty := slices.IndexFunc(p.Units, func(u Unit) bool { return u.Unholdable == "" && slices.Contains(u.Sizes(), 0) })
	switch {
	case !p.class.mlx:
		r.Why = "it has no model of this class"
	case empty >= 0:
		r.Why = "module " + p.Units[empty].Path + " holds an empty weight"
	default:
		r.Loads = verdict(p.class.published)
	}
	return r
}
