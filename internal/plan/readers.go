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

// linter says which readers will load what a plan describes.
type linter struct{ *draft }

// lint gives the verdict on every known reader (docs/format.md §13, §14).
func (l linter) lint() []Reader {
	official := l.official()
	follow := func(name, version, when string) Reader {
		if official.Loads == Refuses {
			return Reader{Name: name, Version: version, Loads: Refuses, Why: official.Why}
		}
		if caveat := l.caveat(); caveat != "" {
			when += "; " + caveat
		}
		return Reader{Name: name, Version: version, Loads: Untested, Why: when}
	}
	return []Reader{
		official,
		l.mlx(),
		l.comfy(),
		follow("DFloat11-ROCM", "0.5.0 format", "the official loader on AMD"),
		l.auto(follow("DFloat11_MPS", "0.5.0 format", "the official loader on Metal, needs transformers 4")),
		l.auto(follow("vllm-df11", "0.0.1", "one GPU")),
		{Name: "dfloat11_tt", Version: "DF11TT01", Loads: Refuses, Why: "it reads its own bundles, not DF11 folders"},
	}
}

// tried says whether the dict is that of an entry for which this holds.
func (l linter) tried(holds func(*Entry) bool) Verdict {
	return verdict(l.entry != nil && l.opt.PatternDict == nil && !l.plan.Unlike && holds(l.entry))
}

// isPublished says whether an entry reproduces repos that others have published.
func isPublished(e *Entry) bool { return len(e.DF11Repos) > 0 }

// official applies the rules of the official loader.
func (l linter) official() Reader {
	r := Reader{Name: "dfloat11", Version: "0.5.0", Loads: Refuses}
	switch {
	case l.plan.Layout == ComfyUI:
		r.Why = "a ComfyUI file has no config.json and ComfyUI's names"
	case l.foreign != "":
		r.Why = "the tensor names are not the module paths of " + l.foreign + ", the class that the source states"
	default:
		r.Loads, r.Why = l.tried(func(e *Entry) bool { return e.loads() == Loads }), l.condition()
	}
	return r
}

// condition states with which packages the official loader takes the output.
func (l linter) condition() string {
	var parts []string
	loader := l.plan.Loader
	if loader.Via == "bfloat16_model=" {
		parts = append(parts, "pass bfloat16_model= of class "+cmp.Or(loader.Class, "unknown"))
	}
	if loader.Transformers != "" {
		parts = append(parts, "transformers "+loader.Transformers)
	}
	if loader.Remark != "" {
		parts = append(parts, loader.Remark)
	}
	if caveat := l.caveat(); caveat != "" {
		parts = append(parts, caveat)
	}
	return strings.Join(append(parts, "setuptools <81"), "; ")
}

// caveat says what nobody checked about a dict that is not the catalog's; "" for one of the catalog.
func (l linter) caveat() string {
	if l.plan.Entry == "" {
		return "module paths not checked against the class"
	}
	return ""
}

// auto adds the rule of readers that build the model from the folder alone: they know no other classes.
func (l linter) auto(r Reader) Reader {
	if r.Loads != Refuses && l.plan.Loader.Via != "AutoModelForCausalLM" {
		r.Loads, r.Why = Refuses, "it builds language models of transformers only"
	}
	return r
}

// comfy applies the rules of the ComfyUI node: it has its own dict for each class and ignores config.json.
func (l linter) comfy() Reader {
	r := Reader{Name: "ComfyUI-DFloat11-Extended", Version: "2026", Loads: Refuses}
	switch {
	case l.plan.Layout != ComfyUI:
		r.Why = "it loads single files with ComfyUI's names only"
	case l.entry == nil || l.entry.LikeOnly || l.entry.Match.ComfyUIClass == "":
		r.Why = "it has no pattern dict for this class"
	default:
		r.Loads, r.Why = l.tried(isPublished), "as class "+l.entry.Match.ComfyUIClass
	}
	return r
}

// mlx: mlx-dfloat takes the entries that it has a model for. A test holds their dicts against its grammar of patterns.
func (l linter) mlx() Reader {
	r := Reader{Name: "mlx-dfloat", Version: "0.2", Loads: Refuses}
	empty := slices.IndexFunc(l.plan.Units, func(u Unit) bool { return u.Unholdable == "" && slices.Contains(u.Sizes(), 0) })
	switch {
	case l.plan.Entry == "" || !l.entry.MLX:
		r.Why = "it has no model of this class"
	case empty >= 0:
		r.Why = "module " + l.plan.Units[empty].Path + " holds an empty weight"
	default:
		r.Loads = l.tried(isPublished)
	}
	return r
}
