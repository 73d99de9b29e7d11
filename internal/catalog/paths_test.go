package catalog

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/hint"
)

// TestPaths reads the paths of modules component by component.
func TestPaths(t *testing.T) {
	for _, c := range []struct {
		path, parent, leaf, numberless string
		splits                         []Split
		last                           Split
	}{
		{"lm_head", "", "lm_head", "lm_head", nil, Split{Index: -1}},
		{"model.layers.7", "model.layers", "7", "model.layers.#", nil, Split{"model.layers", 7, "x"}},
		{"a.1.b.22.c", "a.1.b.22", "c", "a.#.b.#.c", []Split{{"a", 1, "b.22.c"}, {"a.1.b", 22, "c"}}, Split{"a.1.b", 22, "c.x"}},
		{"a.-1.b", "a.-1", "b", "a.-1.b", nil, Split{Index: -1}},
		{"a.x1.b", "a.x1", "b", "a.x1.b", nil, Split{Index: -1}},
		{"1.2", "1", "2", "#.#", nil, Split{"1", 2, "x"}},
	} {
		if Parent(c.path) != c.parent || Leaf(c.path) != c.leaf || Numberless(c.path) != c.numberless {
			t.Errorf("%s: %q, %q, %q", c.path, Parent(c.path), Leaf(c.path), Numberless(c.path))
		}
		if got := Splits(c.path); !slices.Equal(got, c.splits) {
			t.Errorf("%s: splits %v, want %v", c.path, got, c.splits)
		}
		if got := LastSplit(c.path); got != c.last {
			t.Errorf("%s: last split %v, want %v", c.path, got, c.last)
		}
	}
	if WeightName("a", "b.c") != "a.b.c.weight" || WeightName("a", "") != "a.weight" {
		t.Error("weights are named otherwise")
	}
	if n, ok := Number("99999999999999999999"); !ok || n != 1<<62-1 {
		t.Errorf("too large a number is %d, %v", n, ok)
	}
}

// TestModules lists every proper prefix once, in natural order, and refuses names that would make
// very many of them.
func TestModules(t *testing.T) {
	got, err := Modules([]string{"a.10.w", "a.9.b.w", "a.9.w", "w"})
	if want := []string{"a", "a.9", "a.9.b", "a.10"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	many := make([]string, 20_000)
	for i := range many {
		many[i] = fmt.Sprintf("%d%s.weight", i, strings.Repeat(".aaaaaaaa", 29))
	}
	for words, names := range map[string][]string{
		"more than 32 parts":   {strings.Repeat("a.", 32) + "w"},
		"more than 512 bytes":  {strings.Repeat("a", 513)},
		"paths of all modules": many,
	} {
		var refused *RefusedError
		if _, err := Modules(names); !errors.As(err, &refused) || !strings.Contains(err.Error(), words) || refused.Hint != map[bool]hint.Hint{true: hint.ShorterNames, false: hint.Rename}[len(names) > 1] {
			t.Errorf("want %s: %.200v", words, err)
		}
	}
}

// TestLayouts checks that each layout's name is read, and that a single form has the family with
// which its name begins.
func TestLayouts(t *testing.T) {
	for _, name := range LayoutNames() {
		l, err := ParseLayout(name)
		if err != nil || l.Single() != strings.HasSuffix(string(l), "single") || !strings.HasPrefix(string(l), string(l.Family())) {
			t.Errorf("%s is %s of %s, %v", name, l, l.Family(), err)
		}
	}
	if _, err := ParseLayout("gguf"); err == nil {
		t.Error("gguf was accepted as a layout")
	}
}

// TestRename applies one rule, and leaves a name alone that a rule could have made.
func TestRename(t *testing.T) {
	rules := [][2]string{{"language_model.model.", "model.language_model."}, {"vision.", ""}, {"h.", "model.h."}}
	for name, want := range map[string]string{
		"language_model.model.norm": "model.language_model.norm",
		"model.language_model.norm": "model.language_model.norm",
		"vision.a":                  "a",
		"h.0.w":                     "model.h.0.w",
		"model.h.0.w":               "model.h.0.w",
		"other":                     "other",
	} {
		if got := Rename(rules, name); got != want {
			t.Errorf("%s becomes %s, want %s", name, got, want)
		}
	}
}

// TestFacts asks for facts of a class by names with numbers in them.
func TestFacts(t *testing.T) {
	f := Facts{changes: []string{"experts.#.up_proj"}, tied: []string{"lm_head.weight"},
		Reads: []Read{{"model.layers.#.norm", "model.layers.#"}, {"embed", "."}}}
	if !f.Changes("model.layers.3.experts.12.up_proj.weight") || f.Changes("model.layers.3.up_proj.weight") {
		t.Error("changes are found by another name")
	}
	if !f.MayTie("model.lm_head.weight") || f.MayTie("xlm_head.weight") {
		t.Error("ties are found by another name")
	}
	for _, c := range []struct {
		unit, module string
		outside      bool
	}{
		{"model.layers.3", "model.layers.3.norm", false},
		{"model.layers.3.norm", "model.layers.3.norm", true},
		{"embed", "embed", true},
		{"embed", "other", false},
	} {
		if got := f.ReadsOutside(c.unit, c.module); got != c.outside {
			t.Errorf("%s of unit %s: %v", c.module, c.unit, got)
		}
	}
	if known := FactsOf("Glm4MoeLiteForCausalLM"); !known.IsNew || !known.Changes("mlp.experts.0.up_proj.weight") {
		t.Errorf("%+v", known)
	}
	for _, class := range []string{"", "?", "NobodyForCausalLM"} {
		if f := FactsOf(class); len(f.Renames)+len(f.Reads)+len(f.changes)+len(f.tied) > 0 {
			t.Errorf("%q: %+v", class, f)
		}
	}
}

// TestTables checks that a table has every line that isn't for people, under its first word.
func TestTables(t *testing.T) {
	for name, text := range map[string]string{"paths": pathsText, "reads": readsText, "fills": fillsText, "comfy": comfyText} {
		table, want := newTable(text), map[string]string{}
		for line := range strings.Lines(text) {
			if first, _, _ := strings.Cut(line, " "); first != "#" && first != "?" {
				want[first] += line
			}
		}
		if !maps.Equal(table, want) {
			t.Errorf("%s: not what the text says of each word", name)
		}
	}
}
