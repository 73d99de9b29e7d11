package plan

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/human"
)

// A Reader says whether a program loads the output.
type Reader struct {
	Name    string  `json:"name"`
	Version string  `json:"version"`
	Loads   Verdict `json:"loads"`
	// the rule that fails, or the condition under which it loads
	Why string `json:"why,omitempty"`
}

// A Verdict says whether a program loads something.
type Verdict string

// Verdicts.
const (
	// a tiny model of the class was loaded
	Loads    Verdict = "yes"
	Refuses  Verdict = "no"       // a known rule fails, or a tiny model of the class did not load
	Untested Verdict = "untested" // no known rule fails, and no one has tried
)

// findReaders notes which readers load the output (docs/format.md §13, §14), and how the official
// loader takes it.
func (c *choice) findReaders() {
	c.Readers = []Reader{c.official(), c.comfy()}
	for i := range c.Readers { // the source states its class
		c.Readers[i].Why = human.Message("%s", c.Readers[i].Why)
	}
}

// official applies the rules of the official loader.
func (c *choice) official() Reader {
	r := Reader{Name: "dfloat11", Version: "0.5.0", Loads: Refuses}
	switch {
	case c.Layout == catalog.ComfyUI:
		r.Why = "a file for ComfyUI has ComfyUI's names"
	case c.incomplete != "":
		r.Why = c.incomplete
	case len(c.Unfilled) > 0:
		r.Why = c.Unfilled[0]
	case c.Loader.Via == "own code":
		r.Why = "no release of transformers or diffusers has its class, only its authors' code: " + c.Loader.Class
	case c.foreign != "":
		r.Why = "the tensor names aren't the module paths of " + c.foreign +
			", the class that the source states"
	default:
		if r.Loads = c.try(); r.Loads == Refuses {
			r.Why = "a tiny model of " + c.cfg.Class() +
				" didn't load there, or it loaded with other weights"
		} else {
			r.Why = c.condition()
		}
	}
	return r
}

// comfy applies the rules of the ComfyUI node. The node has a dict of its own for each class, and
// ignores config.json.
func (c *choice) comfy() Reader {
	r := Reader{Name: "ComfyUI-DFloat11-Extended", Version: "2026", Loads: Refuses}
	switch {
	case c.Layout != catalog.ComfyUI:
		r.Why = "it loads single files with ComfyUI's names only"
	case len(c.Unfilled) > 0:
		r.Why = c.Unfilled[0]
	case c.entry == nil:
		r.Why = "it has no pattern dict for this class"
	default:
		class, result, why := c.entry.InComfy()
		r.Why = cmp.Or(why, "as class "+class)
		switch {
		case result == "equal" && c.isOwnDict():
			r.Loads = Loads
		case result != "no":
			r.Loads = Untested
		}
	}
	return r
}

// isOwnDict reports whether the source gets this dict without any option.
func (c *choice) isOwnDict() bool { return c.Provenance != "given" && !c.Unlike }

// fits reports whether the plan has a tried class, stores its experts alike, and compresses only
// modules that are, or lie in, modules that were compressed there.
func (c *choice) fits(t catalog.Tried) bool {
	form := c.experts()
	return t.ModelType == c.cfg.ModelType && t.Class == c.cfg.Class() &&
		(form == "" || form == t.Experts) && !slices.ContainsFunc(c.Units, func(u Unit) bool { return !t.Covers(u.Path) })
}

// experts says how the source stores its experts: "fused", "separate", or "" if it has none.
func (c *choice) experts() string {
	if slices.ContainsFunc(c.plainTensors(), Tensor.IsFusedExperts) {
		return "fused"
	}
	isSeparate := func(t Tensor) bool { return separateExpert.MatchString(t.Name) }
	if slices.ContainsFunc(c.Units, func(u Unit) bool {
		return slices.ContainsFunc(u.Attrs, isSeparate)
	}) {
		return "separate"
	}
	return ""
}

// storesHead reports whether the output has a matrix for its head.
func (c *choice) storesHead() bool {
	isHead := func(t Tensor) bool { return slices.Contains(headNames, catalog.Parent(t.Name)) }
	return slices.ContainsFunc(c.plainTensors(), isHead) || slices.ContainsFunc(c.Units,
		func(u Unit) bool { return slices.ContainsFunc(u.Attrs, isHead) })
}

// cameOut returns what became of models that one version saved and another loaded. A model whose
// embeddings are tied, as this one's are or aren't, may come out otherwise.
func cameOut(t catalog.Tried, column int, tied bool) Verdict {
	switch t.Results[column] {
	case "equal", map[bool]string{true: "tied", false: "untied"}[tied]:
		return Loads
	case "-":
		return Untested
	}
	return Refuses
}

// try looks up what became of models of the source's class. It sets how, and with which
// transformers, the loader takes the output.
func (c *choice) try() Verdict {
	version, _, _ := strings.Cut(catalog.Decode[string](c.cfg.Raw["transformers_version"]), ".")
	major, _ := strconv.Atoi(version)
	in4, in5 := Untested, Untested
	i := slices.IndexFunc(catalog.AllTried(), c.fits)
	if i >= 0 {
		t, tied := catalog.AllTried()[i], c.TiedEmbeddings || !c.storesHead()
		// saved by transformers 5, or of a class that it alone has
		if major >= 5 || c.facts.IsNew {
			major, in5 = 5, cameOut(t, 2, tied)
			in4 = in5
		} else {
			in4, in5 = cameOut(t, 0, tied), cameOut(t, 1, tied)
		}
	} else if remote := catalog.Decode[map[string]any](c.cfg.Raw["auto_map"]); remote != nil {
		class := "AutoModelForCausalLM"
		if remote[class] == nil {
			class = "AutoModel"
		}
		c.Loader = catalog.Loader{Via: catalog.ViaClass, Class: class, RemoteCode: true}
	}
	if loader := &c.Loader; !strings.Contains(loader.Transformers, "<") &&
		!strings.HasPrefix(loader.Transformers, ">=5") {
		switch {
		case major >= 5 || in5 == Loads && in4 != Loads:
			loader.Transformers = ">=5"
		case in5 != Loads:
			loader.Transformers = strings.TrimPrefix(loader.Transformers+",<5", ",")
		}
	}
	switch {
	case !c.isOwnDict():
		return Untested
	case in4 == Loads || in5 == Loads:
		return Loads
	case in4 == Refuses && in5 == Refuses:
		return Refuses
	}
	return Untested
}

// condition says which packages the official loader needs for the output.
func (c *choice) condition() string {
	var parts []string
	loader := c.Loader
	if loader.Via == catalog.ViaClass {
		parts = append(parts, "pass bfloat16_model= of class "+cmp.Or(loader.Class, "unknown"))
	}
	if loader.Transformers != "" {
		parts = append(parts, "transformers "+loader.Transformers)
	}
	if loader.Remark != "" {
		parts = append(parts, loader.Remark)
	}
	return strings.Join(append(parts, "setuptools <81"), "; ")
}
