package catalog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/hint"
)

// TestMatch finds the modules of each pattern, and refuses what the official loader would confuse.
func TestMatch(t *testing.T) {
	modules := []string{"a", "a.0", "a.0.b", "a.1", "a.1.b", "b", "head"}
	for _, c := range []struct {
		dict PatternDict
		want string // the modules, or part of the refusal
	}{
		{PatternDict{{`a\.\d+`, []string{"b"}}, {`head`, nil}}, "[[a.0 a.1] [head]]"},
		{PatternDict{{`a`, []string{"0.b"}}, {`none`, nil}}, "[[a] []]"},
		{PatternDict{{`a\.\d`, nil}, {`a\.1`, nil}}, "module a.1 matches two patterns"},
		{PatternDict{{`a\.\d`, nil}, {`a\.0\.b`, nil}}, "module a.0.b lies inside module a.0"},
		{PatternDict{{`a\.\d+`, []string{"b.c"}}, {`b`, nil}}, "confuses the official loader"},
		{PatternDict{}, "the pattern dict is empty"},
		{PatternDict{{`a`, nil}, {`a`, nil}}, "appears twice"},
		{PatternDict{{`a(?=b)`, nil}}, "isn't supported"},
		{PatternDict{{`a`, []string{"x..y"}}}, "no attribute path"},
	} {
		found, err := c.dict.Match(t.Context(), modules, nil)
		if got := fmt.Sprint(found, err); !strings.Contains(got, c.want) {
			t.Errorf("%v: %s, want %s", c.dict, got, c.want)
		}
	}
	d := PatternDict{{`a\.\d+`, nil}, {`none`, nil}, {`(`, nil}}
	if n := d.CountMatching(t.Context(), modules); n != 1 {
		t.Errorf("%d patterns match", n)
	}
	if !d.Matches("a.7") || d.Matches("a.7.b") {
		t.Error("a pattern matches another module")
	}
	long, steps := PatternDict{{"x" + strings.Repeat("[a]", 2600), nil}}, strings.Repeat("a", 300_000)
	_, err := long.Match(t.Context(), []string{steps}, nil)
	if e, ok := errors.AsType[*RefusedError](err); !ok || e.Hint != hint.Costly ||
		!strings.Contains(err.Error(), "would take very long to match") {
		t.Error(err)
	}
	stopped, stop := context.WithCancelCause(t.Context())
	stop(io.ErrClosedPipe)
	if _, err := d[:1].Match(stopped, modules, nil); !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
}

// TestConfig reads what decides a plan of a config.json, in the text model first.
func TestConfig(t *testing.T) {
	c, err := ReadConfig("config.json", []byte(`{"model_type": "toy", "architectures": ["ToyForCausalLM"], "num_experts": 8,
		"auto_map": null, "torch_dtype": "float16", "thinker_config": {"text_config": {"num_hidden_layers": 2}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if c.Experts() != 8 || c.Number("num_hidden_layers") != 2 || c.Number("none") != -1 || c.ModelDType() != "F16" {
		t.Errorf("%d experts, %d layers, %s", c.Experts(), c.Number("num_hidden_layers"), c.ModelDType())
	}
	if c.Class() != "ToyForCausalLM" || !c.HasHead() || c.Holds("auto_map") || c.GuessLoader().Via != "AutoModelForCausalLM" {
		t.Errorf("class %s, loader %+v", c.Class(), c.GuessLoader())
	}
	for module, extra := range map[string]bool{"model.layers.1.q": false, "model.layers.2": true, "vision.layers.2.q": false} {
		if c.IsExtraLayer(module) != extra {
			t.Errorf("%s is an extra layer: %v", module, !extra)
		}
	}
	const both = `{"tie_word_embeddings": true, "limit": Infinity, "text_config": {"tie_word_embeddings": false}}`
	if c, err = ReadConfig("config.json", []byte(both)); err != nil || *LookUp[bool](c, "tie_word_embeddings") {
		t.Errorf("tied %v, %v", c, err)
	}
	none, err := ReadConfig("", nil)
	if err != nil || none.ModelDType() != "BF16" || none.Class() != "" || none.GuessLoader().Via != ViaClass {
		t.Errorf("%+v, %v", none, err)
	}
	for _, broken := range []string{"", "[]", "null", "{", "{} {}", "\xff{}"} {
		var refused *RefusedError
		if _, err := ReadConfig("config.json", []byte(broken)); !errors.As(err, &refused) {
			t.Errorf("%q: %v", broken, err)
		}
	}
}

// TestClassOfNone checks that a config without a class has the class that the library makes of its
// model type, and an unlisted class the facts of that one. Only the model's own code is unknown.
// transformers 4.57 writes Qwen2-VL's class into text_config.
func TestClassOfNone(t *testing.T) {
	for config, want := range map[string][2]string{ // the class, and the kind of GPT-2's attn.c_attn
		`{"model_type": "gpt2", "architectures": ["Own"]}`:                                                  {"Own", "Conv1D"},
		`{"model_type": "gpt2"}`:                                                                            {"GPT2LMHeadModel", "Conv1D"},
		`{"model_type": "llama", "architectures": ["GPT2LMHeadModel"]}`:                                     {"GPT2LMHeadModel", "Conv1D"},
		`{"model_type": "gpt2", "architectures": ["Own"], "auto_map": {"AutoModel": "x"}}`:                  {"Own", ""},
		`{"model_type": "qwen2_vl", "text_config": {"architectures": ["Qwen2VLForConditionalGeneration"]}}`: {"Qwen2VLForConditionalGeneration", ""},
		`{"model_type": "llava", "text_config": {"architectures": ["LlamaForCausalLM"]}}`:                   {"LlavaForConditionalGeneration", ""},
		`{"_class_name": "UNet"}`:                                                                           {"UNet", ""},
		`{"model_type": "none"}`:                                                                            {"", ""},
	} {
		c, err := ReadConfig("config.json", []byte(config))
		if err != nil {
			t.Fatal(err)
		}
		facts := c.Facts()
		if got := [2]string{c.Class(), facts.Kind("transformer.h.1.attn.c_attn")}; got != want {
			t.Errorf("%s: %q, want %q", config, got, want)
		}
	}
}

// TestStacks sorts modules into stacks by the outermost number that counts blocks of one kind.
func TestStacks(t *testing.T) {
	c := &Config{Raw: Members{"num_hidden_layers": []byte("2")}}
	stacks := c.Stacks([]string{"model.layers.0.mlp.up_proj", "model.layers.0.self_attn.k_proj", "model.layers.0.self_attn.q_proj",
		"model.layers.1.mlp.experts.0.up_proj", "model.layers.1.self_attn.q_proj", "model.layers.2.self_attn.q_proj",
		"net.0.a", "net.1.b", "net.2.c", "net.3.d", "net.4.e", "single.0.x", "head"})
	if len(stacks) != 1 || len(stacks["model.layers"]) != 2 {
		t.Fatalf("stacks %v", slices.Collect(maps.Keys(stacks)))
	}
	if got, want := stacks["model.layers"][0], []string{"self_attn.q_proj", "self_attn.k_proj", "mlp.up_proj"}; !slices.Equal(got, want) {
		t.Errorf("attributes %v, want %v", got, want)
	}
	for module, table := range map[string]bool{"model.embed_tokens": true, "a.q_norm": true, "a.conv.proj": true, "a.q_proj": false, "rope_emb": true} {
		if IsTable(module) != table {
			t.Errorf("%s is a table: %v", module, !table)
		}
	}
}

// TestScore: a marker says more than an architecture, an architecture more than the model type, and
// what does not hold leaves nothing.
func TestScore(t *testing.T) {
	yes := true
	shape := func(name string) ([]int64, bool) { return []int64{8, 16}, name == "there.weight" }
	c := &Config{ModelType: "toy", Architectures: []string{"ToyModel"}, Raw: Members{"tie_word_embeddings": []byte("true")}}
	for _, x := range []struct {
		match Match
		want  int
	}{
		{Match{}, 0},
		{Match{ModelType: []string{"toy"}}, 1},
		{Match{ModelType: []string{"toy"}, Architectures: []string{"ToyModel"}, Tied: &yes}, 3},
		{Match{Markers: []string{"there.weight"}, Absent: []string{"none.weight"}}, 8},
		{Match{ModelType: []string{"toy"}, Markers: []string{"none.weight"}}, 0},
		{Match{Markers: []string{"there.weight"}, Shapes: map[string][]int64{"there.weight": {0, 16}}}, 8},
		{Match{Markers: []string{"there.weight"}, Shapes: map[string][]int64{"there.weight": {0, 17}}}, 0},
		{Match{Markers: []string{"there.weight"}, Shapes: map[string][]int64{"there.weight": {8}}}, 0},
		{Match{Markers: []string{"there.weight"}, Shapes: map[string][]int64{"there.weight": {-9, -8}}}, 8},
		{Match{Markers: []string{"there.weight"}, Shapes: map[string][]int64{"there.weight": {0, -16}}}, 0},
		{Match{ModelType: []string{"toy"}, Absent: []string{"there.weight"}}, 0},
		{Match{ModelType: []string{"toy"}, ClassName: []string{"Other"}}, 0},
	} {
		if got := (&Entry{Match: x.match}).Score(c, shape); got != x.want {
			t.Errorf("%+v scores %d, want %d", x.match, got, x.want)
		}
	}
	e := &Entry{Dicts: Dicts{KeepBF16: []string{"*.gate"}}}
	if !e.Keeps("a.b.gate") || e.Keeps("a.gate.b") || (*Entry)(nil).Keeps("a.gate") {
		t.Error("another module stays in BF16")
	}
}

// TestNamesByTheConfig checks that a name that depends on a number of the config is known by it.
func TestNamesByTheConfig(t *testing.T) {
	all := AllTried()
	i := slices.IndexFunc(all, func(t Tried) bool { return t.Class == "DeepseekV3ForCausalLM" })
	for config, want := range map[string]bool{`{"q_lora_rank": null}`: true, `{"q_lora_rank": 0}`: true, `{"q_lora_rank": 1536}`: false, `{}`: false} {
		cfg, err := ReadConfig("config.json", []byte(config))
		if err != nil {
			t.Fatal(err)
		}
		if got := all[i].Loads("model.layers.3.self_attn.q_proj.weight", cfg); got != want {
			t.Errorf("%s: %v", config, got)
		}
	}
}
