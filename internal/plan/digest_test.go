package plan

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// twoShards is a tiny model with a second shard, which begins in the middle of the last block. With
// tied, its head is stored although it has the values of the embedding.
func twoShards(tied bool) Source {
	m := tiny()
	if tied { // nothing else of the remainder is in the second shard
		m.names = slices.DeleteFunc(m.names, func(n string) bool { return n == "model.norm.weight" })
	}
	last := slices.Index(m.names, "model.layers.1.mlp.up_proj.weight")
	a := headerFile("model-00001-of-00002.safetensors", m.tensors(m.names[:last]))
	b := headerFile("model-00002-of-00002.safetensors", m.tensors(m.names[last:]))
	config := map[string]any{"model_type": "toy", "architectures": []string{"ToyForCausalLM"}, "tie_word_embeddings": tied}
	src := source([]WeightFile{a, b}, config, "model.safetensors.index.json", "LICENSE", "generation_config.json")
	src.Index = fmt.Appendf(nil, `{"weight_map": {"model.embed_tokens.weight": %q, "lm_head.weight": %q}}`, a.Path, b.Path)
	return src
}

// TestOutputDigests checks that an output's digest changes with its tensors and with the content of
// their source files, and with nothing else: not with the commit, with copied files, or with file
// names.
func TestOutputDigests(t *testing.T) {
	const embed, layer0, layer1, head, rest = "model_embed_tokens.safetensors", "model_layers_0.safetensors", "model_layers_1.safetensors", "lm_head.safetensors", "remainder.safetensors"
	pin := func(file int, etag string) func(*Source) {
		return func(s *Source) { s.Weights[file].ETag, s.Files[file].ETag = etag, etag }
	}
	unpinned := func(commit string) func(*Source) {
		return func(s *Source) { pin(0, "")(s); s.Commit = commit }
	}
	for name, tt := range map[string]struct {
		tied         bool
		before, then func(*Source)
		changed      []string
		plan         bool // has another digest
	}{
		"commit":      {then: func(s *Source) { s.Commit = "other" }},
		"copied file": {then: func(s *Source) { s.Files[len(s.Files)-1] = File{Path: "notes.txt", Size: 3, ETag: "x"} }},
		"renamed shard": {plan: true, then: func(s *Source) {
			s.Weights[1].Path, s.Files[1].Path = "model-00003-of-00003.safetensors", "model-00003-of-00003.safetensors"
			s.Index = fmt.Appendf(nil, `{"weight_map": {"model.embed_tokens.weight": %q, "lm_head.weight": %q}}`, s.Weights[0].Path, s.Weights[1].Path)
		}},
		"first shard":              {then: pin(0, "x"), changed: []string{embed, layer0, layer1}, plan: true},
		"second shard":             {then: pin(1, "x"), changed: []string{head, rest, layer1}, plan: true},
		"second shard with a twin": {tied: true, then: pin(1, "x"), changed: []string{rest, layer1}, plan: true},
		"commit without a hash":    {before: unpinned("a"), then: unpinned("b"), changed: []string{embed, layer0, layer1}, plan: true},
		"shape": {plan: true, then: func(s *Source) {
			last := s.Weights[1].Header.Tensors
			last[len(last)-1].Shape = []int64{32, 32}
		}, changed: []string{head}},
		"type": {plan: true, then: func(s *Source) {
			for i, x := range s.Weights[1].Header.Tensors {
				if x.Name == "model.norm.weight" {
					s.Weights[1].Header.Tensors[i].DType = "F16"
				}
			}
		}, changed: []string{rest}},
	} {
		t.Run(name, func(t *testing.T) {
			opt := Options{PatternDict: tinyDict()}
			if tt.tied {
				opt.PatternDict = slices.DeleteFunc(opt.PatternDict, func(p catalog.Pattern) bool { return p.Regex == `lm_head` || p.Regex == `model\.embed_tokens` })
			}
			src, other := twoShards(tt.tied), twoShards(tt.tied)
			if tt.before != nil {
				tt.before(&src)
			}
			tt.then(&other)
			was, is := mustPlan(t, src, opt), mustPlan(t, other, opt)
			before, now := was.OutputDigests(), is.OutputDigests()
			var changed []string
			for _, path := range slices.Sorted(maps.Keys(before)) {
				if before[path] != now[path] {
					changed = append(changed, path)
				}
			}
			slices.Sort(tt.changed)
			if !slices.Equal(changed, tt.changed) || (was.Digest() != is.Digest()) != tt.plan {
				t.Errorf("%v have changed, want %v; the plan %v", changed, tt.changed, was.Digest() != is.Digest())
			}
		})
	}
}

// The digest of an output covers a tensor that isn't stored because it must equal one of the
// output's tensors, even one in a unit. The plan's digest covers the tensors that are left out,
// too.
func TestDigestsCoverWhatIsNotStored(t *testing.T) {
	t5 := func(etag string) *Plan {
		a, b := newModel(), newModel()
		a.add("shared.weight", safetensors.BF16, 64, 32)
		for _, x := range []string{"q", "k", "v", "o"} {
			a.add("encoder.block.0.layer.0.SelfAttention."+x+".weight", safetensors.BF16, 32, 32)
		}
		b.add("encoder.embed_tokens.weight", safetensors.BF16, 64, 32)
		src := source([]WeightFile{a.file("model-00001-of-00002.safetensors"), b.file("model-00002-of-00002.safetensors")},
			map[string]any{"model_type": "t5", "architectures": []string{"T5EncoderModel"}}, "model.safetensors.index.json")
		src.Index = []byte(`{"weight_map": {"shared.weight": "model-00001-of-00002.safetensors", "encoder.embed_tokens.weight": "model-00002-of-00002.safetensors"}}`)
		src.Weights[1].ETag, src.Files[1].ETag = etag, etag
		return mustPlan(t, src, Options{Like: "t5-encoder", PatternDict: catalog.PatternDict{{Regex: "shared", Attrs: []string{}}}})
	}
	one, two := t5("x"), t5("y")
	for path, is := range one.OutputDigests() {
		if other := two.OutputDigests()[path]; (is != other) != (path == "shared.safetensors") {
			t.Errorf("%s: changed %v", path, is != other)
		}
	}
	before := one.Digest()
	if one.Dropped = one.Remainder[:1]; one.Digest() == before {
		t.Error("the plan's digest ignores what is left out")
	}
}

// TestAskedStays checks that options have the digest that manifests store, so that a target that is
// up to date stays so with the next version.
func TestAskedStays(t *testing.T) {
	const exact = "651b434685b5dcd544390a7b83d28a6a777db47cdd52b831c866f31e30a895c5"
	for _, tt := range []struct {
		want    string
		opt     Options
		license string
	}{
		{"", Options{}, ""},
		{"", Options{Finished: true}, ""},
		{exact, Options{ExactF32: true}, ""},
		{exact, Options{ExactF32: true, Finished: true}, ""},
		{"e3fcf660316926c1235a6facadb66499d1a3e9ee99eab8f9d7e64b4a9bd9fdaa", Options{}, "mit"},
		{"581ac20be87c9c311bada87a8fbb4d759de337bd4ab0e5c79d6d09b07218b75d", Options{Layout: catalog.ComfyUI, Component: "transformer_2", WeightFile: "a.safetensors", Like: "qwen3-untied", Unfilled: true}, ""},
		{"561f1304c8424f962cb39d43c5ca4946ec66322e4f7a27d0e5e7da4a86dbcdf9", Options{PatternDict: catalog.PatternDict{{Regex: "lm_head"}, {Regex: `h\.\d+`, Attrs: []string{"a", "b.c"}}}, Include: []string{"*.py"}, For: OfficialReader}, ""},
	} {
		if got := tt.opt.Asked(tt.license); got != tt.want {
			t.Errorf("%+v: %s, want %s", tt.opt, got, tt.want)
		}
	}
}
