package plan

import (
	_ "embed"
	"strings"
	"sync"
)

// read says that a method reads the weight of another module. A DF11 loader fills a unit's weights when the unit is called, so a
// method outside finds no weight (docs/models.md). In paths # stands for any number.
type read struct {
	weight string // path of the module with the weight
	reader string // path of the module with the method; "." is the model itself
	method string
}

// readsText is what testdata/classes/reads.py found in transformers and diffusers: "class weight reader method" in each line. A
// line that begins with ? is a read that the script could not follow, for people to look at.
//
//go:embed catalog/reads.txt
var readsText string

// classReads returns the reads of every class.
var classReads = sync.OnceValue(func() map[string][]read {
	reads := map[string][]read{}
	for line := range strings.Lines(readsText) {
		if f := strings.Fields(line); len(f) == 4 && f[0] != "?" {
			reads[f[0]] = append(reads[f[0]], read{f[1], f[2], f[3]})
		}
	}
	return reads
})

// numberless writes # for every component of a path that is a number.
func numberless(path string) string {
	parts := strings.Split(path, ".")
	for i, p := range parts {
		if _, ok := number(p); ok {
			parts[i] = "#"
		}
	}
	return strings.Join(parts, ".")
}
