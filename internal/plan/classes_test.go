package plan

import (
	"bytes"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/safetensors"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// class is a model class as the library that defines it builds it: every parameter with its shape
// and the kind of module that holds it. testdata/classes says where the list is from.
type class struct {
	entry   string // id in the catalog
	name    string // "Qwen3ForCausalLM"
	library string // "transformers 4.57.6"
	params  []param
}

type param struct {
	name  string
	shape []int64
	kind  string // class of the module: "Linear", "Embedding", …
}

// TestClasses plans what the classes of transformers and diffusers really hold, so that a name in
// the catalog that no class has is found. Units must be made of nn.Linear and nn.Embedding only,
// the kinds that the official loader replaces. The golden file lists, for review, what of the
// matrices stays in BF16.
func TestClasses(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	for _, c := range readClasses(t) {
		e := catalog.Find(c.entry)
		if e == nil {
			t.Errorf("%s: no such entry", c.entry)
			continue
		}
		describeClass(t, &b, e, c)
	}
	compareGolden(t, filepath.Join("testdata", "classes", "plans.txt"), b.Bytes())
}

// describeClass plans a class by its entry and writes what becomes of its matrices.
func describeClass(t *testing.T, b *bytes.Buffer, e *catalog.Entry, c class) {
	t.Helper()
	fmt.Fprintf(b, "== %s: %s, %s\n", e.ID, c.name, c.library)
	tied := mustBeTied(e)
	opt := ownOptions(e)
	p, err := New(t.Context(), synthSource(e, c.model(e, tied), tied), opt)
	if err != nil {
		fmt.Fprintf(b, "refused: %v\n\n", err)
		if e.Refuse == nil {
			t.Errorf("%s: %v", e.ID, err)
		}
		return
	}
	if p.Entry != e.ID {
		t.Errorf("%s: the plan uses entry %q", e.ID, p.Entry)
	}
	checkWhole(t, p)
	kinds := c.kinds()
	in := map[string]bool{}
	var nWeights int64
	for _, u := range p.Units {
		nWeights += u.NElems()
		for _, a := range u.Attrs {
			in[a.Name] = true
			k := kinds[a.Name]
			if isExperts := a.Parameter && strings.Contains(k, "Experts"); !isExperts && k != "Linear" && k != "Embedding" {
				t.Errorf("%s: %s is in a unit and belongs to a %q", e.ID, a.Name, k)
			}
		}
	}
	fmt.Fprintf(b, "units %d, weights %d\n", len(p.Units), nWeights)
	for _, path := range c.otherOrder(p) {
		fmt.Fprintf(b, "not in the class's order: %s\n", path)
	}
	for _, name := range c.left(in, tied, e) {
		fmt.Fprintf(b, "BF16 %s\n", name)
	}
	b.WriteByte('\n')
}

// otherOrder lists the modules of units whose weights are in another order than the class defines
// them in, those that differ by indices alone once. classes.txt keeps the order inside a module,
// but not that of a block's modules.
func (c class) otherOrder(p *Plan) []string {
	at := map[string]int{}
	for i, x := range c.params {
		at[x.name] = i
	}
	var paths []string
	for _, u := range p.Units {
		last := map[string]int{}
		for _, a := range u.Attrs {
			in := catalog.Parent(catalog.Parent(a.Name))
			path := indices.ReplaceAllString(in, ".#")
			if before, ok := last[in]; ok && at[a.Name] < before && !slices.Contains(paths, path) {
				paths = append(paths, path)
			}
			last[in] = at[a.Name]
		}
	}
	return paths
}

// model makes the headers of a checkpoint of the class, under the names that it has on the Hub.
func (c class) model(e *catalog.Entry, tied bool) *model {
	m := newModel()
	m.layers = 4
	for _, p := range c.params {
		if !tied || e.Tied == nil || p.name != e.Tied.Head+".weight" {
			m.add(p.name, safetensors.BF16, p.shape...)
		}
	}
	m.hubNames(e.Renames())
	return m
}

// kinds returns the kind of module of each parameter.
func (c class) kinds() map[string]string {
	kinds := map[string]string{}
	for _, p := range c.params {
		kinds[p.name] = p.kind
	}
	return kinds
}

var indices = regexp.MustCompile(`\.\d+\b`)

// left lists the matrices that are in no unit, those that differ by indices alone once, with their
// kind.
func (c class) left(in map[string]bool, tied bool, e *catalog.Entry) []string {
	var names []string
	for _, p := range c.params {
		if in[p.name] || len(p.shape) != 2 || tied && p.name == e.Tied.Head+".weight" {
			continue
		}
		if name := indices.ReplaceAllString(p.name, ".#") + " " + p.kind; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// readClasses reads testdata/classes/classes.txt.
func readClasses(t *testing.T) []class {
	t.Helper()
	var list []class
	for line := range strings.Lines(string(world.Read(t, filepath.Join("testdata", "classes", "classes.txt")))) {
		f := strings.Fields(line)
		if f[0] == "=" {
			list = append(list, class{entry: f[1], name: f[2], library: strings.Join(f[3:], " ")})
			continue
		}
		c := &list[len(list)-1]
		for _, name := range world.Unbrace(t, f[0]) {
			c.params = append(c.params, param{name, world.Shape(t, f[1]), f[2]})
		}
	}
	return list
}
