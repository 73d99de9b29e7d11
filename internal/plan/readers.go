package plan

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/reader"
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

// Names of readers.
const (
	OfficialReader = "dfloat11"
	OwnReader      = "df11"
	ComfyReader    = "ComfyUI-DFloat11-Extended"
)

// A program is a reader as a plan sees it. A new reader is one more entry of programs, and its data
// in the catalog.
type program struct {
	name, version string
	// opens says why the program doesn't open the output's files, or returns ""
	opens func(*choice) string
	// fills says why the program can't fill a unit, or returns ""
	fills func(*choice, Unit) string
	// loads says what became of models of the class, and on which condition the output loads
	loads func(*choice) (Verdict, string)
}

// programs are the readers that plans know (docs/format.md §13, §14, §17).
var programs = []program{
	{OfficialReader, "0.5.0", (*choice).officialOpens, (*choice).officialFills, (*choice).officialLoads},
	{ComfyReader, "2026", (*choice).comfyOpens, (*choice).comfyFills, (*choice).comfyLoads},
	{OwnReader, "1", (*choice).ownOpens, (*choice).classFills, (*choice).ownLoads},
}

// findReaders notes which readers load the output, and how.
func (c *choice) findReaders() {
	for _, p := range programs {
		r := Reader{Name: p.name, Version: p.version, Loads: Refuses}
		if r.Why = cmp.Or(p.opens(c), c.firstUnfilled(p)); r.Why == "" {
			r.Loads, r.Why = p.loads(c)
		}
		r.Why = human.Message("%s", r.Why) // the source states its class
		c.Readers = append(c.Readers, r)
	}
}

// firstUnfilled returns the reason for the first unit that a program can't fill, or "".
func (c *choice) firstUnfilled(p program) string {
	for _, u := range c.Units {
		if why := p.fills(c, u); why != "" {
			return why
		}
	}
	return ""
}

// unfilled returns, for each unit that no program can fill which opens the output, a reason.
func (c *choice) unfilled() (why []string) {
	for _, u := range c.Units {
		var reasons []string
		isFilled := false
		for _, p := range programs {
			if p.opens(c) == "" {
				reason := p.fills(c, u)
				isFilled = isFilled || reason == ""
				reasons = append(reasons, reason)
			}
		}
		if !isFilled && len(reasons) > 0 {
			why = append(why, reasons[0])
		}
	}
	return why
}

// classFills applies the rules for the class of the source, which every reader must follow.
func (c *choice) classFills(u Unit) string {
	var modules []string
	for _, t := range u.Attrs {
		if !t.Parameter {
			modules = append(modules, catalog.Parent(t.Name))
		}
	}
	if len(modules) == 0 {
		return ""
	}
	return c.cantFill(c.formed, u.Path, modules...)
}

// officialOpens says why the official loader doesn't take the output's files.
func (c *choice) officialOpens() string {
	if c.Layout == catalog.ComfyUI {
		return "a file for ComfyUI has ComfyUI's names"
	}
	return c.incomplete
}

// officialFills applies the rules of the official loader to a unit.
func (c *choice) officialFills(u Unit) string {
	if u.HoldsParameters() {
		return u.Path + " holds parameters, not weights of Linear modules (add --for dfloat11 to leave them in BF16)"
	}
	return c.classFills(u)
}

// officialLoads says what became of models of the class in the official loader.
func (c *choice) officialLoads() (Verdict, string) {
	switch {
	case c.Loader.Via == "own code":
		return Refuses, "no release of transformers or diffusers has its class, only its authors' code: " +
			c.Loader.Class
	case c.names.foreign != "":
		return Refuses, c.foreignNames()
	}
	tiny := c.try() // completes the condition
	return c.judge(tiny, c.condition())
}

// foreignNames says that the names aren't those of the class.
func (c *choice) foreignNames() string {
	return "the tensor names aren't the module paths of " + c.names.foreign +
		", the class that the source states"
}

// ownOpens says why df11 doesn't take the output's files.
func (c *choice) ownOpens() string { return c.officialOpens() }

// ownLoads says what became of models of the class in df11.
func (c *choice) ownLoads() (Verdict, string) {
	switch {
	case c.Loader.Via == "own code":
		return Refuses, "no release of transformers or diffusers has its class, only its authors' code: " +
			c.Loader.Class
	case c.names.foreign != "" && !c.names.mapped:
		return Refuses, c.foreignNames()
	}
	var results []string
	if t := c.tried(); t != nil {
		results = t.DF11
	}
	in4, in5, _ := c.outcomes(results)
	condition := installOwn
	switch {
	case in4 == Loads && in5 != Loads:
		condition += "; transformers <5"
	case in5 == Loads && in4 != Loads || c.facts.IsNew:
		condition += "; transformers >=5"
	}
	return c.judge(verdict(in4, in5), condition)
}

// installOwn is how one installs df11.
const installOwn = "pip install df11-convert"

// comfyOpens says why the ComfyUI node doesn't take the output's files.
func (c *choice) comfyOpens() string {
	if c.Layout != catalog.ComfyUI {
		return "it loads single files with ComfyUI's names only"
	}
	return ""
}

// comfyFills applies the rules of the ComfyUI node to a unit. The node has a dict of its own for each
// class, and ignores config.json.
func (c *choice) comfyFills(u Unit) string {
	if why := c.classFills(u); why != "" || c.node == nil {
		return why
	}
	attrs := make([]string, len(u.Attrs))
	for i, t := range u.Attrs {
		attrs[i] = t.Attr
	}
	return reader.NodeCantFill(c.node, u.Path, attrs)
}

// comfyLoads says what became of models of the class in the ComfyUI node.
func (c *choice) comfyLoads() (Verdict, string) {
	if c.entry == nil {
		return Refuses, "it has no pattern dict for this class"
	}
	class, result, why := c.entry.InComfy()
	why = cmp.Or(why, "as class "+class)
	switch {
	case result == "equal" && c.isOwnDict():
		return Loads, why
	case result != "no":
		return Untested, why
	}
	return Refuses, why
}

// isOwnDict reports whether the source gets this dict without any option.
func (c *choice) isOwnDict() bool {
	return c.Provenance != "given" && !c.Unlike && c.aside == nil
}

// fits reports whether the plan has a tried class, stores its experts alike, and compresses only
// modules that are, or lie in, modules that were compressed there.
func (c *choice) fits(t catalog.Tried) bool {
	if t.ModelType != c.cfg.ModelType || t.Class != c.cfg.Class() {
		return false
	}
	form := c.experts()
	return (form == "" || form == t.Experts) &&
		!slices.ContainsFunc(c.Units, func(u Unit) bool { return !t.Covers(u.Path) })
}

// experts says how the source stores its experts: "fused", "separate", or "" if it has none.
func (c *choice) experts() string {
	isSeparate := func(t Tensor) bool { return separateExpert.MatchString(t.Name) }
	holds := func(is func(Tensor) bool) bool {
		return slices.ContainsFunc(c.plainTensors(), is) || slices.ContainsFunc(c.Units,
			func(u Unit) bool { return slices.ContainsFunc(u.Attrs, is) })
	}
	switch {
	case holds(Tensor.IsFusedExperts):
		return "fused"
	case slices.ContainsFunc(c.Units, func(u Unit) bool { return slices.ContainsFunc(u.Attrs, isSeparate) }):
		return "separate"
	}
	return ""
}

// storesHead reports whether the output has a matrix for its head.
func (c *choice) storesHead() bool {
	isHead := func(t Tensor) bool { return slices.Contains(headNames, catalog.Parent(c.names.inClass(t.Name))) }
	return slices.ContainsFunc(c.plainTensors(), isHead) || slices.ContainsFunc(c.Units,
		func(u Unit) bool { return slices.ContainsFunc(u.Attrs, isHead) })
}

// cameOut returns the verdict that a result of a tiny model gives. A model whose embeddings are tied,
// as this one's are or aren't, may come out otherwise.
func cameOut(result string, tied bool) Verdict {
	switch result {
	case "equal", map[bool]string{true: "tied", false: "untied"}[tied]:
		return Loads
	case "-":
		return Untested
	}
	return Refuses
}

// tried returns what became of models of the source's class, or nil.
func (c *choice) tried() *catalog.Tried {
	all := catalog.AllTried()
	if i := slices.IndexFunc(all, c.fits); i >= 0 {
		return &all[i]
	}
	return nil
}

// outcomes returns the verdicts about a model like the source in transformers 4 and 5, by the results
// of a reader for the class: saved by 4 and loaded by 4, saved by 4 and loaded by 5, saved by 5. It
// also reports whether the source is of version 5: saved by it, or of a class that it alone has.
func (c *choice) outcomes(results []string) (in4, in5 Verdict, isNew bool) {
	version, _, _ := strings.Cut(catalog.Decode[string](c.cfg.Raw["transformers_version"]), ".")
	major, _ := strconv.Atoi(version)
	isNew = major >= 5
	if results == nil {
		return Untested, Untested, isNew
	}
	stated := catalog.LookUp[bool](c.cfg, "tie_word_embeddings")
	tied := c.TiedEmbeddings || !c.storesHead() && (stated == nil || *stated)
	if isNew || c.facts.IsNew {
		in5 = cameOut(results[2], tied)
		return in5, in5, true
	}
	return cameOut(results[0], tied), cameOut(results[1], tied), false
}

// verdict sums up the verdicts of both versions.
func verdict(in4, in5 Verdict) Verdict {
	switch {
	case in4 == Loads || in5 == Loads:
		return Loads
	case in4 == Refuses && in5 == Refuses:
		return Refuses
	}
	return Untested
}

// try looks up what became of models of the source's class in the official loader. It sets how, and
// with which transformers, the loader takes the output.
func (c *choice) try() Verdict {
	var results []string
	if t := c.tried(); t != nil {
		results = t.Results
	} else if class := c.cfg.OwnClass(); class != "" {
		c.Loader = catalog.Loader{Via: catalog.ViaClass, Class: class, RemoteCode: true}
	}
	in4, in5, isNew := c.outcomes(results)
	if loader := &c.Loader; !strings.Contains(loader.Transformers, "<") &&
		!strings.HasPrefix(loader.Transformers, ">=5") {
		switch {
		case isNew || in5 == Loads && in4 != Loads:
			loader.Transformers = ">=5"
		case in5 != Loads:
			loader.Transformers = strings.TrimPrefix(loader.Transformers+",<5", ",")
		}
	}
	return verdict(in4, in5)
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
