package catalog

import (
	"cmp"
	_ "embed" // the table of what was tried
	"maps"
	"slices"
	"strings"
	"sync"
)

// Tried is what became of tiny models of a class in the readers that transformers is part of.
type Tried struct {
	Class, ModelType string
	// how a layer stores its experts: "fused" in one tensor, or "separate", also without experts
	Experts string
	// by reader: saved by transformers 4 and loaded by 4, saved by 4 and loaded by 5, saved and loaded
	// by 5; see tried.txt
	Results map[string][]string
	Modules []string // compressed modules; # stands for any number

	names string // its words in names.txt, each after a blank and before another, or the line's end
}

// triedText is written by .ci/deep/70-readers.sh. Its first lines describe it.
//
//go:embed tried.txt
var triedText string

// namesText is written by .ci/deep/70-readers.sh, too. Its first lines describe it.
//
//go:embed names.txt
var namesText string

// AllTried lists the classes whose tiny models the readers have tried to load. After them come the
// same models with another head, one that is never compressed: the readers load them alike.
var AllTried = sync.OnceValue(func() (list []Tried) {
	names := map[string]string{}
	for line := range strings.Lines(namesText) {
		if f := strings.SplitN(line, " ", 3); f[0] != "#" && len(f) > 2 {
			key := line[:len(f[0]+" "+f[1])]
			names[key] = line[len(key):]
		}
	}
	for line := range strings.Lines(triedText) {
		if f := strings.Fields(line); f[0] != "#" {
			class, _, _ := strings.Cut(f[0], "=")
			modelType, experts, _ := strings.Cut(strings.Trim(f[1], "-"), "+")
			results, modules := readResults(f[2:])
			list = append(list, Tried{class, modelType, cmp.Or(experts, "separate"), results, modules,
				names[f[0]+" "+f[1]]})
			delete(names, f[0]+" "+f[1])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(names)) {
		class, kind, _ := strings.Cut(key, " ")
		modelType, _, _ := strings.Cut(kind, "+")
		i := slices.IndexFunc(list, func(t Tried) bool {
			return t.ModelType == modelType && t.sharesBase(class, names[key])
		})
		if i >= 0 {
			head := list[i]
			head.Class, head.names = class, names[key]
			head.Modules = ofClass(head.Modules, names[key])
			list = append(list, head)
		}
	}
	return list
})

// readResults reads the words of a line from the results on: three of the official loader, then
// reader=a,b,c for each other reader, and then the modules.
func readResults(words []string) (results map[string][]string, modules []string) {
	results, modules = map[string][]string{"dfloat11": words[:3]}, words[3:]
	for len(modules) > 0 {
		reader, list, ok := strings.Cut(modules[0], "=")
		if !ok {
			break
		}
		results[reader], modules = strings.Split(list, ","), modules[1:]
	}
	return results, modules
}

// sharesBase reports whether a class has the base model of t under the same path, and another head.
// names are those of names.txt about the class.
func (t *Tried) sharesBase(class, names string) bool {
	stem := class[:strings.LastIndex(class, "For")+len("For")]
	isBase := t.Class == strings.TrimSuffix(stem, "For")+"Model"
	return (isBase || strings.HasPrefix(t.Class, stem)) && len(ofClass(t.Modules, names)) > 0
}

// ofClass returns those modules that a class has, by its names of names.txt.
func ofClass(modules []string, names string) (has []string) {
	for _, m := range modules {
		if strings.Contains(names, " "+m+".") {
			has = append(has, m)
		}
	}
	return has
}

// Covers reports whether a module is a compressed one, or lies in one.
func (t *Tried) Covers(module string) bool {
	at := Numberless(module)
	return slices.ContainsFunc(t.Modules,
		func(m string) bool { return at == m || strings.HasPrefix(at, m+".") })
}

// Names returns the words of names.txt about the class, or nil.
func (t *Tried) Names() []string { return strings.Fields(t.names) }

// Loads reports whether the class loads a tensor by its name, or leaves it out because it says so
// itself. cfg decides about names that only some configs have.
func (t *Tried) Loads(tensor string, cfg *Config) bool {
	name := Numberless(tensor)
	if strings.Contains(t.names, " "+name+" ") || strings.HasSuffix(t.names, " "+name+"\n") {
		return true
	}
	for rest := t.names; ; {
		_, after, ok := strings.Cut(rest, " "+name+"?")
		if !ok {
			break
		}
		member, _, _ := strings.Cut(after, " ")
		key, isNot := strings.CutPrefix(strings.TrimSpace(member), "!")
		if known, is := cfg.isTrue(key); known && is != isNot {
			return true
		}
		rest = after
	}
	return slices.ContainsFunc(t.Names(), func(word string) bool {
		prefix, isPrefix := strings.CutSuffix(word, "*")
		return isPrefix && strings.HasPrefix(name, prefix)
	})
}

// comfyText has the results of the ComfyUI node. Its first lines describe it.
//
//go:embed comfy.txt
var comfyText string

var comfyTable = sync.OnceValue(func() table { return newTable(comfyText) })

// InComfy returns what became of a tiny model of the entry in the ComfyUI node: the class that
// ComfyUI makes of it, the result, and the reason for a "no".
func (e *Entry) InComfy() (class, result, why string) {
	for words := range comfyTable().of(e.ID) {
		return words[0], words[1], strings.Join(words[2:], " ")
	}
	return "", "", ""
}

// NodeLoads reports whether the ComfyUI node has the entry's pattern dict for its class.
func (e *Entry) NodeLoads() bool {
	_, result, _ := e.InComfy()
	return result == "equal" || result == "read"
}
