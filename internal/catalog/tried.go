package catalog

import (
	_ "embed" // the table of what was tried
	"slices"
	"strings"
	"sync"
)

// Tried is what became of tiny models of a class in the official loader.
type Tried struct {
	Class, ModelType string
	// saved by transformers 4 and loaded in 4, saved by 4 in 5, saved by 5 in 5; see tried.txt
	Results []string
	Modules []string // those that were compressed; # stands for any number
}

// triedText is written by .ci/deep/70-readers.sh. Its first lines say what it holds.
//
//go:embed tried.txt
var triedText string

// AllTried lists the classes of which a model was loaded, or did not load.
var AllTried = sync.OnceValue(func() (list []Tried) {
	for line := range strings.Lines(triedText) {
		if f := strings.Fields(line); f[0] != "#" {
			class, _, _ := strings.Cut(f[0], "=")
			list = append(list, Tried{class, strings.Trim(f[1], "-"), f[2:5], f[5:]})
		}
	}
	return list
})

// Covers reports whether a module is, or lies in, one that was compressed.
func (t *Tried) Covers(module string) bool {
	at := Numberless(module)
	return slices.ContainsFunc(t.Modules,
		func(m string) bool { return at == m || strings.HasPrefix(at, m+".") })
}
