package catalog

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/testing/alloc"
)

// TestNear finds each entry with a name of six letters or more by that name with a slip in it, and the entries for a model by the model's
// name, and nothing for a name that is like none.
func TestNear(t *testing.T) {
	for _, e := range All() {
		for i := 0; i < len(e.ID) && len(e.ID) >= 6; i++ {
			for kind, like := range map[string]string{"a letter less": e.ID[:i] + e.ID[i+1:], "another letter": e.ID[:i] + "z" + e.ID[i+1:], "a letter more": e.ID[:i] + "z" + e.ID[i:]} {
				if near := Near(like); Find(like) == nil && !slices.Contains(near, e.ID) {
					t.Errorf("%s, %s: %v doesn't have %s", like, kind, near, e.ID)
				}
			}
		}
	}
	for like, want := range map[string]string{"Qwen/Qwen3-8B": "qwen3-vl", "qwen3": "qwen3_5", "FLUX-comfy": "flux-comfyui", "mistarl": "mistral-untied", "chroma": "chroma-comfyui"} {
		if near := Near(like); len(near) == 0 || !slices.Contains(near, want) {
			t.Errorf("%s: %v, want %s", like, near, want)
		}
	}
	for _, like := range []string{"", "x", "zzzzzzzz", "./src", "é"} {
		if near := Near(like); len(near) > 0 {
			t.Errorf("%q: %v", like, near)
		}
	}
}

// TestPatternDictJSON writes dicts as Python's json.dumps does.
func TestPatternDictJSON(t *testing.T) {
	d, err := ParsePatternDict([]byte(`{"b\\.\\d+": ["x.y", "z"], "a": [], "é😀\u007f": ["\t"]}`))
	if err != nil {
		t.Fatal(err)
	}
	const one = `{"b\\.\\d+": ["x.y", "z"], "a": [], "\u00e9\ud83d\ude00\u007f": ["\t"]}`
	if got := d.JSON("", ""); got != one {
		t.Errorf("got  %s\nwant %s", got, one)
	}
	const lines = "{\n      \"b\\\\.\\\\d+\": [\n        \"x.y\",\n        \"z\"\n      ],\n      \"a\": [],\n"
	if got := d.JSON("    ", "  "); !strings.HasPrefix(got, lines) || !strings.HasSuffix(got, "\n    }") {
		t.Errorf("got %q", got)
	}
	for _, bad := range []string{``, `[]`, `{"a": null}`, `{"a": "b"}`, `{"a": [1]}`, `{"a": [], "a": []}`, `{"(": []}`,
		`{"a": [""]}`, `{"a": ["x..y"]}`, `{"a": []} x`, `{"a": []`, "{\"\xff\": []}"} {
		if _, err := ParsePatternDict([]byte(bad)); err == nil {
			t.Errorf("%s was accepted", bad)
		}
	}
	if data, err := json.Marshal(d[1:2]); err != nil || string(data) != `{"a":[]}` {
		t.Errorf("marshalled %s, %v", data, err)
	}
}

// TestPatternDictBombs checks that a dict that would take long to compile or to match is refused
// first.
func TestPatternDictBombs(t *testing.T) {
	var many, wide strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&many, `"a%d":[],`, i)
	}
	for i := range 20 {
		fmt.Fprintf(&wide, `"%d%s":[],`, i, strings.Repeat(`\\d`, 3000))
	}
	for name, dict := range map[string]string{
		"patterns": `{` + many.String() + `"a":[]}`, "bytes": `{` + wide.String() + `"a":[]}`,
		"attributes": `{"a":[` + strings.Repeat(`"",`, 600_000) + `""]}`, "nesting": `{"a":` + strings.Repeat(`[`, 600_000),
	} {
		alloc.Within(t, 32<<20, func() {
			if _, err := ParsePatternDict([]byte(dict)); err == nil || len(err.Error()) > 1000 {
				t.Errorf("%s: %.200v", name, err)
			}
		})
	}
}

// TestDerivedOrder ranks the attributes of the usual names like the published dicts.
func TestDerivedOrder(t *testing.T) {
	same := 0
	for _, id := range []string{"llama-untied-escaped", "qwen2-untied", "gemma", "glm", "starcoder2", "phi", "qwen3-moe", "mixtral",
		"wan-diffusers", "z-image-diffusers", "cogview4-diffusers", "sd35-large-diffusers"} {
		for _, pat := range Find(id).PatternDict {
			sorted := slices.Clone(pat.Attrs)
			slices.SortStableFunc(sorted, CompareAttrs)
			if slices.Equal(sorted, pat.Attrs) {
				same++
			} else {
				t.Logf("%s: derived order %v, catalog %v", id, sorted, pat.Attrs)
			}
		}
	}
	if same < 24 {
		t.Errorf("%d orders are those of the catalog", same)
	}
}

// TestCatalogEntries finds entries that have no id of their own, can do nothing, or state no origin,
// wrong limits, or a field that docs/models.md doesn't list.
func TestCatalogEntries(t *testing.T) {
	files, _ := fs.Glob(entryFiles, "entries/*.json")
	for _, name := range files {
		var family struct {
			Family  string
			Entries []struct {
				Entry
				Verification, Notes string
				ExampleRepos        []string `json:"example_repos"`
				Version             string   `json:"format_version"`
			}
		}
		f, err := entryFiles.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		dec := json.NewDecoder(f)
		dec.DisallowUnknownFields()
		if err := dec.Decode(&family); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	seen := map[string]bool{}
	limits := regexp.MustCompile(`^((>=|<=|==|!=|~=|<|>)\d+(\.\d+)*(,|$))*$`) // as pip takes them
	for _, e := range All() {
		switch {
		case e.ID == "" || seen[e.ID]:
			t.Errorf("id %q is empty or appears twice", e.ID)
		case len(e.PatternDict) == 0 && e.Refuse == nil:
			t.Errorf("%s has neither a pattern dict nor a reason to refuse", e.ID)
		case e.Provenance == "":
			t.Errorf("%s has no provenance", e.ID)
		case !limits.MatchString(e.Loader.Transformers):
			t.Errorf("%s: transformers %q are no version limits", e.ID, e.Loader.Transformers)
		}
		seen[e.ID] = true
	}
}

// FuzzParsePatternDict reads back what it wrote, and never accepts a dict that it cannot match.
func FuzzParsePatternDict(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a": []}`, `{"model\\.layers\\.\\d++": ["x.y", "z"]}`, `{"[^a-z.]+?-": ["é"]}`, `{"(?P<n>\\d)|(?:\\.[-_\\d]+)*": [""]}`,
		`{"a": [], "a": []}`, `{"\\x41[]-]{2}": ["\\"]}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var d PatternDict
		var err error
		// \d alone is a class of 70 ranges
		alloc.PerByte(t, 20_000, len(data), func() { d, err = ParsePatternDict(data) })
		if err != nil {
			return
		}
		again, err := ParsePatternDict([]byte(d.JSON("", "  ")))
		if err != nil || !d.Equal(again) {
			t.Fatalf("%q became %q: %v", d, again, err)
		}
		if err := d.check(); err != nil && len(d) > 0 {
			t.Fatalf("%q: %v", d, err)
		}
	})
}

// TestHeads checks that a model with another head counts as tried, by what became of its base model
// under the same path, and that it loads the tensors of its own head alone.
func TestHeads(t *testing.T) {
	find := func(class string) *Tried {
		all := AllTried()
		i := slices.IndexFunc(all, func(r Tried) bool { return r.Class == class })
		if i < 0 {
			t.Fatalf("%s doesn't count as tried", class)
		}
		return &all[i]
	}
	for head, base := range map[string]string{
		"Qwen3ForSequenceClassification": "Qwen3ForCausalLM", "BertForTokenClassification": "BertForMaskedLM",
		"ModernBertForTokenClassification": "ModernBertForMaskedLM", "Gemma2ForTokenClassification": "Gemma2ForCausalLM",
	} {
		h, b := find(head), find(base)
		if !maps.EqualFunc(h.Results, b.Results, slices.Equal) ||
			len(h.Modules) == 0 || slices.ContainsFunc(h.Modules, func(m string) bool { return m == "lm_head" || !slices.Contains(b.Modules, m) }) {
			t.Errorf("%s: %v, want those of %s: %v", head, h, base, b)
		}
	}
	cfg := &Config{}
	if h := find("BertForTokenClassification"); !h.Loads("classifier.weight", cfg) || h.Loads("cls.predictions.bias", cfg) ||
		h.Covers("encoder.layer.0.output.dense") || !h.Covers("bert.encoder.layer.0.output.dense") {
		t.Error("BertForTokenClassification has the names of another class")
	}
}
