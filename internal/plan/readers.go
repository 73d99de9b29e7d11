package plan

import (
	"cmp"
	"strings"
)

// Reader says whether a program loads the output.
type Reader struct {
	Name    string  `json:"name"`
	Version string  `json:"version"`
	Loads   Verdict `json:"loads"`
	Why     string  `json:"why,omitempty"` // the rule that fails, or the condition under which it loads
}

// Verdict says whether a program loads something.
type Verdict string

// Verdicts.
const (
	Loads    Verdict = "yes"      // models of the same entry were loaded
	Refuses  Verdict = "no"       // a known rule fails
	Untested Verdict = "untested" // no known rule fails, and nobody has tried
)

// OtherReader is a program that reads DF11 folders. Its rules are not known here, so a plan gives no verdict on it.
type OtherReader struct {
	Name string `json:"name"`
	URL  string `json:"url"`
}

// findReaders sets what the plan says about readers (docs/format.md §13, §14).
func (d *draft) findReaders() {
	d.plan.Readers = []Reader{d.official(), d.comfy()}
	if d.plan.Layout != ComfyUI {
		d.plan.OtherReaders = []OtherReader{
			{"mlx-dfloat", "https://github.com/IonDen/mlx-dfloat"},
			{"DFloat11-ROCM", "https://github.com/VX1D/DFloat11-ROCM"},
			{"DFloat11_MPS", "https://github.com/virtualramblas/DFloat11_MPS"},
		}
	}
}

// official applies the rules of the official loader.
func (d *draft) official() Reader {
	r := Reader{Name: "dfloat11", Version: "0.5.0", Loads: Refuses}
	switch {
	case d.plan.Layout == ComfyUI:
		r.Why = "a file for ComfyUI has ComfyUI's names"
	case d.foreign != "":
		r.Why = "the tensor names are not the module paths of " + d.foreign + ", the class that the source states"
	default:
		r.Loads, r.Why = d.tried(func(e *Entry) bool { return e.Loaded != "" || isPublished(e) }), d.plan.condition()
	}
	return r
}

// comfy applies the rules of the ComfyUI node, which has its own dict for each class and ignores config.json.
func (d *draft) comfy() Reader {
	r := Reader{Name: "ComfyUI-DFloat11-Extended", Version: "2026", Loads: Refuses}
	switch {
	case d.plan.Layout != ComfyUI:
		r.Why = "it loads single files with ComfyUI's names only"
	case d.entry == nil || d.entry.LikeOnly || d.entry.Match.ComfyUIClass == "":
		r.Why = "it has no pattern dict for this class"
	default:
		r.Loads, r.Why = d.tried(isPublished), "as class "+d.entry.Match.ComfyUIClass
	}
	return r
}

// tried returns Loads if the dict is that of an entry for which holds is true, else Untested.
func (d *draft) tried(holds func(*Entry) bool) Verdict {
	if d.entry != nil && d.opt.PatternDict == nil && !d.plan.Unlike && holds(d.entry) {
		return Loads
	}
	return Untested
}

// isPublished says whether an entry reproduces repos that others have published.
func isPublished(e *Entry) bool { return len(e.DF11Repos) > 0 }

// condition states with which packages the official loader takes the output.
func (p *Plan) condition() string {
	var parts []string
	loader := p.Loader
	if loader.Via == "bfloat16_model=" {
		parts = append(parts, "pass bfloat16_model= of class "+cmp.Or(loader.Class, "unknown"))
	}
	if loader.Transformers != "" {
		parts = append(parts, "transformers "+loader.Transformers)
	}
	if loader.Remark != "" {
		parts = append(parts, loader.Remark)
	}
	if p.Entry == "" {
		parts = append(parts, "module paths not checked against the class")
	}
	return strings.Join(append(parts, "setuptools <81"), "; ")
}
