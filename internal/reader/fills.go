package reader

import (
	"slices"

	"github.com/df11-convert/df11-convert/internal/catalog"
)

// CantFill says why no loader can give a unit of a class its weights. "" means that no reason is
// known. modules are the modules whose weights the unit has: some below it, or itself. hasModules
// reports whether other modules lie below a path.
//
// Before a unit runs, the official loader gives the weights to the unit, if it's a Linear or an
// Embedding, or else to its attributes, if each is a Linear. It leaves other modules as they are,
// mostly without a word (docs/format.md §13, §14).
func CantFill(class *catalog.Facts, unit string, modules []string,
	hasModules func(path string) bool) string {
	if class.Kind(unit) == catalog.ModuleList {
		return unit + " is a list of modules, which nothing calls"
	}
	for _, module := range modules {
		switch kind := class.Kind(module); {
		case kind != "" && (module != unit || kind != catalog.Embedding):
			return module + " is of class " + kind + ", not Linear"
		case hasModules(module):
			return module + " holds other modules, so it's no Linear"
		case class.ReadsOutside(unit, module):
			return "its class reads the weight of " + module + " outside of " + unit
		case class.MayTie(module + ".weight"):
			return "its class may share the weight of " + module + " with another module"
		}
	}
	return ""
}

// NodeCantFill says why the ComfyUI node can't fill a unit, or returns "". The node reads no dict.
// It has a dict of its own for each class, and fills the attributes in that dict's order.
func NodeCantFill(own catalog.PatternDict, unit string, attrs []string) string {
	for _, p := range own {
		if one := (catalog.PatternDict{p}); one.Matches(unit) {
			if attrs[0] != "" && !slices.Equal(attrs, p.Attrs) {
				return "ComfyUI takes other weights for " + unit + ", or in another order"
			}
			return ""
		}
	}
	return "ComfyUI doesn't decode " + unit
}
