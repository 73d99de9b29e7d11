package catalog

import (
	"cmp"
	_ "embed" // the tables of facts
	"iter"
	"slices"
	"strings"
	"sync"
)

// pathsText is what ../plan/testdata/classes/paths.py found in transformers: each line has a class
// and a fact about its names. The script describes the facts.
//
//go:embed paths.txt
var pathsText string

// readsText is what ../plan/testdata/classes/reads.py found in transformers and diffusers: "class
// weight reader method" in each line. A line that begins with ? is a read that the script couldn't
// follow, for people to inspect.
//
//go:embed reads.txt
var readsText string

// fillsText is another result of reads.py: "class module kind" in each line, for lists of modules,
// and for modules with a 2-D weight that aren't a Linear.
//
//go:embed fills.txt
var fillsText string

// Kinds of modules that a loader treats specially. Any other kind is the name of a class.
const (
	Embedding  = "Embedding"
	ModuleList = "ModuleList"
)

// Facts are what the tables say of a class. The loader of DF11 knows none of them.
type Facts struct {
	// start of a name in a checkpoint, start of the module path; longer starts come first
	Renames [][2]string
	// the path of the class's base model, such as "model."; "" if it has none
	Under string
	Bare  string // for a class that is a base model: the path that other classes have it at
	IsNew bool   // only version 5 of transformers has the class
	Reads []Read
	// parts of names whose weights version 5 fuses, splits, or renames in another way; # is any
	// number
	changes []string
	tied    []string   // ends of names of weights that may be another's
	kinds   [][]string // path and kind of modules that aren't a Linear
}

// FactsOf looks up a class.
func FactsOf(class string) (f Facts) {
	for line := range pathsTable().of(class) {
		switch line[0] {
		case "rename":
			f.Renames = append(f.Renames, [2]string{line[1], strings.TrimPrefix(line[2], "-")})
		case "change":
			f.changes = append(f.changes, strings.ReplaceAll(line[1], "*", "#"))
		case "tied":
			f.tied = append(f.tied, line[1])
		case "under":
			f.Under = line[1]
		case "bare":
			f.Bare = line[1]
		case "new":
			f.IsNew = true
		}
	}
	for line := range readsTable().of(class) {
		f.Reads = append(f.Reads, Read{line[0], line[1]})
	}
	f.kinds = slices.Collect(fillsTable().of(class))
	slices.SortFunc(f.Renames,
		func(a, b [2]string) int { return cmp.Compare(len(b[0]), len(a[0])) })
	return f
}

// isListed reports whether a table has a class.
func isListed(class string) bool {
	return len(pathsTable()[class])+len(readsTable()[class])+len(fillsTable()[class]) > 0
}

// libraryClass returns the class that the library makes of a model type if the config names no
// class. It returns "" if that isn't known.
func libraryClass(modelType string) string { return libraryClasses()[modelType] }

// libraryClasses has the classes by model type.
var libraryClasses = sync.OnceValue(func() map[string]string {
	classes := map[string]string{}
	for line := range strings.Lines(pathsText) {
		class, modelType, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " auto ")
		if ok && classes[modelType] == "" {
			classes[modelType] = class
		}
	}
	return classes
})

// A table has, for each first word of a line, the part of a text that has these lines. They must
// follow each other.
type table map[string]string

var (
	pathsTable = sync.OnceValue(func() table { return newTable(pathsText) })
	readsTable = sync.OnceValue(func() table { return newTable(readsText) })
	fillsTable = sync.OnceValue(func() table { return newTable(fillsText) })
)

// newTable reads the lines of a text but for those that begin with # or ?, which are for people.
func newTable(text string) table {
	t, at := table{}, 0
	for line := range strings.Lines(text) {
		if first, _, ok := strings.Cut(line, " "); ok && first != "#" && first != "?" {
			t[first] = text[at-len(t[first]) : at+len(line)]
		}
		at += len(line)
	}
	return t
}

// of returns the lines that begin with a word, split into the words after it.
func (t table) of(first string) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		for line := range strings.Lines(t[first]) {
			if !yield(strings.Fields(line)[1:]) {
				return
			}
		}
	}
}

// Changes reports whether transformers 5 makes other weights of a tensor.
func (f *Facts) Changes(tensor string) bool {
	if len(f.changes) == 0 {
		return false
	}
	name := Numberless(tensor)
	return slices.ContainsFunc(f.changes,
		func(part string) bool { return strings.Contains(name, part) })
}

// MayTie reports whether the class may share a weight with another module.
func (f *Facts) MayTie(tensor string) bool {
	return slices.ContainsFunc(f.tied,
		func(end string) bool { return strings.HasSuffix("."+tensor, "."+end) })
}

// Kind returns what a module with a weight is if it isn't a Linear. It returns "" if it's a Linear
// or unknown. The path may lack the class's first components, or have others before them.
func (f *Facts) Kind(module string) string {
	if len(f.kinds) == 0 {
		return ""
	}
	path := "." + Numberless(module)
	for _, k := range f.kinds {
		if known := "." + k[0]; strings.HasSuffix(known, path) || strings.HasSuffix(path, known) {
			return k[1]
		}
	}
	return ""
}

// ReadsOutside reports whether the class reads the module's weight outside of a unit. If so, that
// unit may not hold the weight.
func (f *Facts) ReadsOutside(unit, module string) bool {
	if len(f.Reads) == 0 {
		return false
	}
	unit, path := Numberless(unit), Numberless(module)
	return slices.ContainsFunc(f.Reads, func(r Read) bool {
		return r.Weight == path && r.Reader != unit && !strings.HasPrefix(r.Reader, unit+".")
	})
}

// A Read says that a method reads the weight of another module. A DF11 loader fills a unit's
// weights when the unit is called, so a method outside finds no weight (docs/models.md). In paths,
// # stands for any number.
type Read struct {
	Weight string // path of the module with the weight
	Reader string // path of the module with the method; "." is the model itself
}

// Rename applies the first rule that fits the start of a name. It leaves a name that a rule could
// have made.
func Rename(rules [][2]string, name string) string {
	for _, r := range rules {
		longer := !strings.HasPrefix(name, r[0]) || len(r[1]) > len(r[0])
		if r[1] != "" && longer && strings.HasPrefix(name, r[1]) {
			return name
		}
	}
	for _, r := range rules {
		if rest, ok := strings.CutPrefix(name, r[0]); ok {
			return r[1] + rest
		}
	}
	return name
}
