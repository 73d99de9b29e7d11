package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// llama is a Llama-shaped source with a head that is stored or not, and a tie that the config
// states or not.
func llama(headStored bool, tied any) Source {
	m := checkpointOf("llama")
	if !headStored {
		m.drop("lm_head")
	}
	config := map[string]any{"model_type": "llama", "architectures": []string{"LlamaForCausalLM"}}
	if tied != nil {
		config["tie_word_embeddings"] = tied
	}
	return source([]WeightFile{m.file("model.safetensors")}, config)
}

// TestTied covers what the config says about tied embeddings and what the source stores.
func TestTied(t *testing.T) {
	for _, c := range []struct {
		name   string
		stored bool
		tied   any
		units  int
		alias  int
	}{
		{"untied", true, false, 5, 0},
		{"silent: the class default", true, nil, 5, 0},
		{"tied, not stored", false, true, 3, 0},
		{"tied, stored", true, true, 3, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := mustPlan(t, llama(c.stored, c.tied), Options{})
			if len(p.Units) != c.units || len(p.Aliases) != c.alias {
				t.Errorf("%d units and %d aliases, want %d and %d", len(p.Units), len(p.Aliases), c.units, c.alias)
			}
			if c.alias > 0 && len(p.Differences) == 0 {
				t.Error("the dropped head is no difference")
			}
			if p.Entry != "llama-untied-escaped" {
				t.Errorf("entry %q, want the escaped style", p.Entry)
			}
			checkWhole(t, p)
		})
	}
}

// TestGivenDictStoresTwice checks that a plan says so if a given dict compresses both names of a
// tied matrix that the source stores under both.
func TestGivenDictStoresTwice(t *testing.T) {
	const words = "although it is tied to model.embed_tokens.weight, so the output stores that matrix twice"
	both := catalog.PatternDict{{Regex: "lm_head", Attrs: []string{}}, {Regex: `model\.embed_tokens`, Attrs: []string{}}}
	for _, tied := range []bool{true, false} {
		opt := Options{PatternDict: both}
		if p := mustPlan(t, llama(true, tied), opt); warns(p, words) != tied {
			t.Errorf("tied: %v: %q", tied, p.Warnings)
		}
		if opt.Finished = true; warns(mustPlan(t, llama(true, tied), opt), words) {
			t.Errorf("tied: %v: warns of a finished model", tied)
		}
	}
	if p := mustPlan(t, llama(false, true), Options{PatternDict: catalog.PatternDict{{Regex: `model\.layers\.\d+`, Attrs: []string{"mlp.up_proj"}}}}); warns(p, words) {
		t.Errorf("stored once: %q", p.Warnings)
	}
}

// TestHeadStoredForEmbedding stores a tied matrix under the name of the embedding when the source
// has only the head.
func TestHeadStoredForEmbedding(t *testing.T) {
	src := llama(true, true)
	ts := src.Weights[0].Header.Tensors
	src.Weights[0] = headerFile("model.safetensors", ts[1:])
	src.Files[0] = src.Weights[0].File
	p := mustPlan(t, src, Options{})
	if r := p.Remainder[0]; r.Name != "model.embed_tokens.weight" || r.Source != "lm_head.weight" {
		t.Errorf("the remainder starts with %+v", r)
	}
}

// TestSplitShards follows the sharding rule of huggingface_hub.
func TestSplitShards(t *testing.T) {
	for _, c := range []struct {
		sizes []int64
		want  string
	}{
		{nil, "[[]]"},
		{[]int64{10}, "[[10]]"},
		{[]int64{4, 6}, "[[4 6]]"},
		{[]int64{4, 7}, "[[4] [7]]"},
		{[]int64{11}, "[[11]]"},
		// an oversized tensor goes ahead of the open shard
		{[]int64{4, 11, 5, 2}, "[[11] [4 5] [2]]"},
		{[]int64{10, 1}, "[[10] [1]]"},
		{[]int64{0, 0}, "[[0 0]]"},
	} {
		var ts []Tensor
		for _, n := range c.sizes {
			ts = append(ts, Tensor{Length: n})
		}
		got := make([][]int64, 0)
		for _, shard := range splitShards(ts, 10) {
			sizes := []int64{}
			for _, x := range shard {
				sizes = append(sizes, x.Length)
			}
			got = append(got, sizes)
		}
		if s := fmt.Sprint(got); s != c.want {
			t.Errorf("%v: got %s, want %s", c.sizes, s, c.want)
		}
	}
}

// TestLargeRemainder splits a remainder above 5 GB and names an index for it.
func TestLargeRemainder(t *testing.T) {
	tr := newTrial()
	tr.m.add("vision.a", safetensors.BF16, 1<<20, 2000)
	tr.m.add("vision.b", safetensors.BF16, 1<<20, 1000)
	p := tr.mustPlan(t)
	var paths []string
	for _, f := range p.RemainderFiles {
		paths = append(paths, f.Path)
	}
	if fmt.Sprint(paths) != "[remainder-00001-of-00002.safetensors remainder-00002-of-00002.safetensors]" ||
		p.RemainderIndex != "remainder.safetensors.index.json" {
		t.Errorf("files %v, index %q", paths, p.RemainderIndex)
	}
}

// TestUnholdable leaves single units in BF16 without changing the dict.
func TestUnholdable(t *testing.T) {
	tr := newTrial()
	tr.m.dims["lm_head.weight"] = []int64{1 << 16, 1 << 15}
	tr.m.dims["model.embed_tokens.weight"] = []int64{0, 16}
	p := tr.mustPlan(t)
	got := fmt.Sprint(p.Units[0].Unholdable, " ", p.Units[1].Unholdable, " ", p.Units[2].Unholdable)
	if got != "too_large empty " || len(p.PatternDict) != 3 {
		t.Errorf("unholdable %q, dict %v", got, p.PatternDict)
	}
}

// TestCaseCollision refuses copies that a case-insensitive file system would merge.
func TestCaseCollision(t *testing.T) {
	for _, pair := range [][2]string{{"License", "LICENSE"}, {"Config.json", "x"}, {"a/B.txt", "a/b.txt"}, {"ſ.txt", "S.txt"}, {"LM_head.safetensors/a", "x"}, {"\u00e9.json", "e\u0301.json"}, {"Straße.txt", "STRASSE.txt"}} {
		src := source([]WeightFile{tiny().file("model.safetensors")}, map[string]any{}, pair[0], pair[1])
		if _, err := New(t.Context(), src, Options{PatternDict: tinyDict()}); err == nil || !strings.Contains(err.Error(), "differ only in case") {
			t.Errorf("%v: got %v", pair, err)
		}
	}
}

// TestDigest changes with everything that decides output bytes and with nothing else.
func TestDigest(t *testing.T) {
	base := newTrial()
	p := base.mustPlan(t)
	again, _ := newTrial().plan()
	if p.Digest() != again.Digest() || len(p.Digest()) != 64 {
		t.Errorf("the same input gives %s and %s", p.Digest(), again.Digest())
	}
	seen := map[string]string{p.Digest(): "the base"}
	for name, change := range map[string]func(*trial){
		"id":              func(tr *trial) { tr.src = func(s Source) Source { s.ID = "other/model"; return s } },
		"attribute order": func(tr *trial) { slices.Reverse(tr.opt.PatternDict[2].Attrs) },
		"pattern order":   func(tr *trial) { slices.Reverse(tr.opt.PatternDict) },
		"regex":           func(tr *trial) { tr.opt.PatternDict[2].Regex = `model.layers.\d+` },
		"layout":          func(tr *trial) { tr.opt.Layout = catalog.TransformersSingle },
	} {
		tr := newTrial()
		change(tr)
		changed, err := tr.plan()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if other, ok := seen[changed.Digest()]; ok {
			t.Errorf("%s has the digest of %s", name, other)
		}
		seen[changed.Digest()] = name
	}
}

// TestWhatStays checks that the tensors that stay BF16 explain the size, and are left out if
// they're small.
func TestWhatStays(t *testing.T) {
	for want, c := range map[string]struct {
		unit, embedding, fused, rest int64 // weights
		tied                         bool
	}{
		"33% of the model is a tied embedding, which stays BF16": {unit: 1e6, embedding: 5e5, tied: true},
		"": {unit: 1e6, embedding: 1000},
		"90% of the model is fused experts that the pattern dict leaves out":                                                          {unit: 1e6, fused: 9e6},
		"40% of the model is fused experts that the pattern dict leaves out, and 20% of the model is in no module that is compressed": {unit: 4e6, fused: 4e6, rest: 2e6},
	} {
		p := &Plan{Units: []Unit{{Path: "a", Attrs: []Tensor{{Length: c.unit}}}}}
		p.TiedEmbeddings = c.tied
		p.Remainder = []Tensor{
			{Name: "model.embed_tokens.weight", DType: "BF16", Shape: []int64{c.embedding, 1}, Length: c.embedding},
			{Name: "experts.gate_up_proj", Shape: []int64{c.fused, 1, 1}, Length: c.fused},
			{Name: "x.weight", Shape: []int64{c.rest, 1}, Length: c.rest},
		}
		if got := p.Stays(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
