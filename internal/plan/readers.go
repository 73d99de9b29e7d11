package plan

import (
	"cmp"
	"slices"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/hint"
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

// A program is a reader as a plan sees it. A new reader is one more entry of programs, and its results
// in the catalog's tried.txt.
type program struct {
	// name and version are those of the program as it was tried; a program without versions has the
	// beginning of a commit
	name, version string
	// opens says why the program doesn't open outputs of a layout, or returns ""
	opens func(catalog.Layout) string
	// fills says why the program can't give a unit its weights, or returns ""
	fills func(*output, Unit) string
	// builds says why the program doesn't build the class of the output, or returns ""
	builds func(*output) string
	// loads says what became of tiny models of the class, and on which condition the output loads
	loads func(*output, precedent) (Verdict, string)
	// parameters reports whether the program fills units of parameters (docs/format.md §17)
	parameters bool
}

// programs are the readers that plans know (docs/format.md §13, §14, §17).
var programs = []program{
	{OfficialReader, "0.5.0", libraryOpens, officialFills, officialBuilds, officialLoads, false},
	{ComfyReader, "6073936", comfyOpens, comfyFills, comfyBuilds, comfyLoads, false},
	{OwnReader, "1", libraryOpens, classFills, ownBuilds, ownLoads, true},
}

// takesParameters reports whether a program that opens the layout fills parameters: any, or the one
// of this name.
func takesParameters(name string, layout catalog.Layout) bool {
	return slices.ContainsFunc(programs, func(p program) bool {
		return p.parameters && p.opens(layout) == "" && (name == "" || p.name == name)
	})
}

// An output is what readers judge: the units and the other tensors of a plan, and what is known of
// their class.
type output struct {
	*division
	from  *reading
	model *recognition
	dict  *dictionary
	tied  bool   // head and embedding are one matrix
	lacks string // why the pipeline around it doesn't load; "" if it does, or there is none
}

// isOwnDict reports whether the source gets this dict without any option.
func (o *output) isOwnDict() bool {
	return o.model.provenance != "given" && !o.model.unlike && o.dict.aside == nil
}

// verdicts are what readers say of an output.
type verdicts struct {
	readers  []Reader
	unfilled []string       // see Plan.Unfilled
	loader   catalog.Loader // how the official loader takes the output
}

// askReaders asks every program about the output. It refuses an output with a unit that no reader
// fills, and an output that the caller's reader can't load.
func askReaders(o *output, notes *Notes) (*verdicts, error) {
	opt := o.from.opt
	asked := make([]answer, len(programs))
	for i, p := range programs {
		asked[i] = ask(p, o)
	}
	v := &verdicts{unfilled: unfilled(asked, o.units), loader: o.model.loader}
	if len(v.unfilled) > 0 && !opt.Unfilled {
		return nil, refuse(hint.Unfilled,
			"no reader fills these modules: %s", human.List(v.unfilled))
	}
	if err := checkParameters(o); err != nil {
		return nil, err
	}
	tiny := findPrecedent(o)
	for i, p := range programs {
		r := Reader{Name: p.name, Version: p.version, Loads: Refuses}
		if r.Why = asked[i].obstacle(o.lacks); r.Why == "" {
			r.Loads, r.Why = p.loads(o, tiny)
			if p.name == OfficialReader {
				v.loader = officialLoader(o, tiny)
			}
		}
		r.Why = human.Message("%s", r.Why) // the source states its class
		if p.name == opt.For && r.Loads == Refuses {
			return nil, refuse(hint.ReaderRefuses, "%s can't load the result: %s", r.Name, r.Why)
		}
		v.readers = append(v.readers, r)
	}
	noteOutput(o, v.readers, notes)
	return v, nil
}

// An answer says which rules keep a program from loading an output. Each reason is "" if none does.
type answer struct {
	opens  string
	fills  []string // for each unit; nil if the program doesn't open the output
	builds string
}

func ask(p program, o *output) answer {
	a := answer{opens: p.opens(o.model.layout)}
	if a.opens != "" {
		return a
	}
	a.builds = p.builds(o)
	for _, u := range o.units {
		a.fills = append(a.fills, p.fills(o, u))
	}
	return a
}

// obstacle returns the first reason, or "". lacks is why the pipeline around the output doesn't load.
func (a answer) obstacle(lacks string) string {
	return cmp.Or(a.opens, lacks, cmp.Or(a.fills...), a.builds)
}

// unfilled returns the reason for each unit that no program can fill, among those that open the
// output.
func unfilled(asked []answer, units []Unit) (why []string) {
	for i := range units {
		var reasons []string
		for _, a := range asked {
			if a.opens == "" {
				reasons = append(reasons, a.fills[i])
			}
		}
		if len(reasons) > 0 && !slices.Contains(reasons, "") {
			why = append(why, reasons[0])
		}
	}
	return why
}

// checkParameters refuses units of parameters if the reader that the caller named can't fill them, or
// no reader of the layout can.
func checkParameters(o *output) error {
	name := o.from.opt.For
	if takesParameters(name, o.model.layout) {
		return nil
	}
	var paths []string
	for _, u := range o.units {
		if u.HoldsParameters() {
			paths = append(paths, u.Path)
		}
	}
	if len(paths) == 0 {
		return nil
	}
	return refuse(hint.NoParameters, "%s can't fill parameters: %s", cmp.Or(name, "ComfyUI"),
		human.List(paths))
}

// libraryOpens says why transformers and diffusers don't take files of a layout.
func libraryOpens(layout catalog.Layout) string {
	if layout == catalog.ComfyUI {
		return "a file for ComfyUI has ComfyUI's names"
	}
	return ""
}

// classFills applies the rules for the class of the source, which every reader must follow.
func classFills(o *output, u Unit) string {
	var modules []string
	for _, t := range u.Attrs {
		if !t.Parameter {
			modules = append(modules, catalog.Parent(t.Name))
		}
	}
	if len(modules) == 0 {
		return ""
	}
	return o.from.cantFill(o.inv, u.Path, modules...)
}

// officialFills applies the rules of the official loader to a unit.
func officialFills(o *output, u Unit) string {
	if u.HoldsParameters() {
		return u.Path + " holds parameters, not weights of Linear modules (add --for dfloat11 to leave them in BF16)"
	}
	return classFills(o, u)
}

// officialBuilds says why the official loader doesn't build the class.
func officialBuilds(o *output) string {
	if why := isOwnCode(o); why != "" || o.model.names.foreign == "" {
		return why
	}
	return foreignNames(o)
}

// isOwnCode says that only the model's own code has the class, or returns "".
func isOwnCode(o *output) string {
	if o.model.loader.Via != "own code" {
		return ""
	}
	return "no release of transformers or diffusers has its class, only its authors' code: " +
		o.model.loader.Class
}

// foreignNames says that the names aren't those of the class.
func foreignNames(o *output) string {
	return "the tensor names aren't the module paths of " + o.model.names.foreign +
		", the class that the source states"
}

// officialLoads says what became of models of the class in the official loader.
func officialLoads(o *output, t precedent) (Verdict, string) {
	return judge(o, t, t.verdict(OfficialReader), condition(officialLoader(o, t)))
}

// ownBuilds says why df11 doesn't build the class.
func ownBuilds(o *output) string {
	if why := isOwnCode(o); why != "" || o.model.names.foreign == "" || o.model.names.mapped {
		return why
	}
	return foreignNames(o)
}

// ownLoads says what became of models of the class in df11.
func ownLoads(o *output, t precedent) (Verdict, string) {
	in4, in5 := t.outcomes(OwnReader)
	condition := "pip install df11-convert"
	switch {
	case in4 == Loads && in5 == Refuses:
		condition += "; transformers <5"
	case in5 == Loads && in4 != Loads || o.from.facts.IsNew:
		condition += "; transformers >=5"
	}
	return judge(o, t, t.verdict(OwnReader), condition)
}

// comfyOpens says why the ComfyUI node doesn't take files of a layout.
func comfyOpens(layout catalog.Layout) string {
	if layout != catalog.ComfyUI {
		return "it loads single files with ComfyUI's names only"
	}
	return ""
}

// comfyFills applies the rules of the ComfyUI node to a unit. The node has a dict of its own for each
// class, and ignores config.json.
func comfyFills(o *output, u Unit) string {
	if why := classFills(o, u); why != "" || o.model.node == nil {
		return why
	}
	attrs := make([]string, len(u.Attrs))
	for i, t := range u.Attrs {
		attrs[i] = t.Attr
	}
	return reader.NodeCantFill(o.model.node, u.Path, attrs)
}

// comfyBuilds says that the ComfyUI node has no dict for the class, or returns "".
func comfyBuilds(o *output) string {
	if o.model.entry == nil {
		return "it has no pattern dict for this class"
	}
	return ""
}

// comfyLoads says what became of models of the class in the ComfyUI node.
func comfyLoads(o *output, _ precedent) (Verdict, string) {
	class, result, why := o.model.entry.InComfy()
	why = cmp.Or(why, "as class "+class)
	switch {
	case result == "equal" && o.isOwnDict():
		return Loads, why
	case result != "no":
		return Untested, why
	}
	return Refuses, why
}
