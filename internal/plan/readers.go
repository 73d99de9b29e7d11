package plan

import (
	"cmp"
	_ "embed"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Reader says whether a program loads the output.
type Reader struct {
	Name    string  `json:"name"`
	Version string  `json:"version"`
	Loads   Verdict `json:"loads"`
	// the rule that fails, or the condition under which it loads
	Why string `json:"why,omitempty"`
}

// Verdict says whether a program loads something.
type Verdict string

// Verdicts.
const (
	// a tiny model of the class was loaded, or repos like it are published for this program
	Loads    Verdict = "yes"
	Refuses  Verdict = "no"       // a known rule fails, or a tiny model of the class did not load
	Untested Verdict = "untested" // no known rule fails, and nobody has tried
)

// OtherReader is a program that reads DF11 folders. Its rules are not known here, so a plan gives
// no verdict on it.
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
	case d.plan.Loader.Via == "own code":
		r.Why = "its class is in no release of transformers or diffusers, only in its authors' code: " + d.plan.Loader.Class
	case d.foreign != "":
		r.Why = "the tensor names are not the module paths of " + d.foreign +
			", the class that the source states"
	default:
		if r.Loads = d.try(); r.Loads == Refuses {
			r.Why = "a tiny model of " + d.cfg.class() +
				" did not load there, or with other weights"
		} else {
			r.Why = d.plan.condition(r.Loads)
		}
	}
	return r
}

// comfy applies the rules of the ComfyUI node, which has its own dict for each class and ignores
// config.json.
func (d *draft) comfy() Reader {
	r := Reader{Name: "ComfyUI-DFloat11-Extended", Version: "2026", Loads: Refuses}
	switch {
	case d.plan.Layout != ComfyUI:
		r.Why = "it loads single files with ComfyUI's names only"
	case d.entry == nil || d.entry.LikeOnly || d.entry.Match.ComfyUIClass == "":
		r.Why = "it has no pattern dict for this class"
	default:
		r.Loads, r.Why = Untested, "as class "+d.entry.Match.ComfyUIClass
		if d.isOwnDict() && len(d.entry.DF11Repos) > 0 {
			r.Loads = Loads
		}
	}
	return r
}

// isOwnDict says whether the dict is the one that this source gets by itself.
func (d *draft) isOwnDict() bool { return d.opt.PatternDict == nil && !d.plan.Unlike }

// tried is what became of tiny models of a class in the official loader.
type tried struct {
	class, modelType string
	// saved by transformers 4 and loaded in 4, saved by 4 in 5, saved by 5 in 5; see
	// catalog/tried.txt
	results []string
	modules []string // those that were compressed; # stands for any number
}

// triedText is written by .ci/deep/70-readers.sh. Its first lines say what it holds.
//
//go:embed catalog/tried.txt
var triedText string

// triedClasses returns the classes of which a model was loaded, or did not load.
var triedClasses = sync.OnceValue(func() (list []tried) {
	for line := range strings.Lines(triedText) {
		if f := strings.Fields(line); f[0] != "#" {
			class, _, _ := strings.Cut(f[0], "=")
			list = append(list, tried{class, strings.Trim(f[1], "-"), f[2:5], f[5:]})
		}
	}
	return list
})

// fits says whether the plan is for the class, and all modules to compress are, or lie in, those
// that were compressed in it.
func (t *tried) fits(d *draft) bool {
	return t.class == d.cfg.class() && t.modelType == d.cfg.ModelType &&
		!slices.ContainsFunc(d.plan.Units, func(u Unit) bool {
			at := numberless(u.Path)
			return !slices.ContainsFunc(t.modules,
				func(m string) bool { return at == m || strings.HasPrefix(at, m+".") })
		})
}

// in returns what became of models that one version saved and another loaded: of those that share
// their embeddings as this one does.
func (t *tried) in(column int, tied bool) Verdict {
	switch t.results[column] {
	case "equal", map[bool]string{true: "tied", false: "untied"}[tied]:
		return Loads
	case "-":
		return Untested
	}
	return Refuses
}

// try looks up what became of models of the source's class, and sets how and with which
// transformers the loader takes the output.
func (d *draft) try() Verdict {
	version, _, _ := strings.Cut(decode[string](d.cfg.raw["transformers_version"]), ".")
	major, _ := strconv.Atoi(version)
	in4, in5 := Untested, Untested
	i := slices.IndexFunc(triedClasses(), func(t tried) bool { return t.fits(d) })
	if i >= 0 {
		t, tied := &triedClasses()[i], d.plan.TiedEmbeddings
		// saved by transformers 5, or of a class that it alone has
		if major >= 5 || t.results[0] == "-" {
			major, in5 = 5, t.in(2, tied)
		} else {
			in4, in5 = t.in(0, tied), t.in(1, tied)
		}
	} else if remote := decode[map[string]any](d.cfg.raw["auto_map"]); remote != nil {
		class := "AutoModelForCausalLM"
		if remote[class] == nil {
			class = "AutoModel"
		}
		d.plan.Loader = Loader{Via: viaClass, Class: class, RemoteCode: true}
	}
	if loader := &d.plan.Loader; !strings.Contains(loader.Transformers, "<") &&
		!strings.HasPrefix(loader.Transformers, ">=5") {
		switch {
		case major >= 5 || in5 == Loads && in4 != Loads:
			loader.Transformers = ">=5"
		case in5 != Loads:
			loader.Transformers = strings.TrimPrefix(loader.Transformers+",<5", ",")
		}
	}
	switch {
	case !d.isOwnDict():
		return Untested
	case in4 == Loads || in5 == Loads:
		return Loads
	case in4 == Refuses || in5 == Refuses:
		return Refuses
	}
	return Untested
}

// viaClass is the Via of a model whose class the user builds.
const viaClass = "bfloat16_model="

// condition states with which packages the official loader takes the output.
func (p *Plan) condition(v Verdict) string {
	var parts []string
	loader := p.Loader
	if loader.Via == viaClass {
		parts = append(parts, "pass bfloat16_model= of class "+cmp.Or(loader.Class, "unknown"))
	}
	if loader.Transformers != "" {
		parts = append(parts, "transformers "+loader.Transformers)
	}
	if loader.Remark != "" {
		parts = append(parts, loader.Remark)
	}
	if p.Entry == "" && v != Loads {
		parts = append(parts, "module paths not checked against the class")
	}
	return strings.Join(append(parts, "setuptools <81"), "; ")
}
