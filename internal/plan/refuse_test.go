package plan

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/safetensors"
	"github.com/df11-convert/df11-convert/internal/testing/alloc"
)

// tinyDict is the pattern dict of tiny.
func tinyDict() catalog.PatternDict {
	return catalog.PatternDict{
		{Regex: `lm_head`, Attrs: []string{}},
		{Regex: `model\.embed_tokens`, Attrs: []string{}},
		{Regex: `model\.layers\.\d+`, Attrs: []string{"self_attn.q_proj", "mlp.up_proj"}},
	}
}

// tiny is a small language model with two layers, a norm and a bias each.
func tiny() *model {
	m := newModel()
	m.add("model.embed_tokens.weight", safetensors.BF16, 64, 16)
	for _, l := range []string{"model.layers.0", "model.layers.1"} {
		m.weight(l + ".self_attn.q_proj")
		m.add(l+".self_attn.q_proj.bias", safetensors.BF16, 16)
		m.weight(l + ".mlp.up_proj")
		m.add(l+".input_layernorm.weight", safetensors.BF16, 16)
	}
	m.add("model.norm.weight", safetensors.BF16, 16)
	m.add("lm_head.weight", safetensors.BF16, 64, 16)
	return m
}

// trial is one change of the tiny model, its config and the options.
type trial struct {
	m      *model
	config map[string]any
	opt    Options
	src    func(Source) Source
}

// newTrial starts from the model that converts.
func newTrial() *trial {
	return &trial{
		m: tiny(), opt: Options{PatternDict: tinyDict()}, src: func(s Source) Source { return s },
		config: map[string]any{"model_type": "toy", "architectures": []string{"ToyForCausalLM"}, "tie_word_embeddings": false},
	}
}

func (tr *trial) source() Source {
	return tr.src(source([]WeightFile{tr.m.file("model.safetensors")}, tr.config))
}

func (tr *trial) plan() (*Plan, error) { return New(context.Background(), tr.source(), tr.opt) }

func (tr *trial) mustPlan(t *testing.T) *Plan {
	t.Helper()
	return mustPlan(t, tr.source(), tr.opt)
}

// refusals lists the traps of docs/format.md §14 that headers can show, and the other reasons to
// refuse. Package catalog's tests have those that a dict shows on its own.
var refusals = []struct {
	name   string
	detail string // part of the message, or of it and the hint
	change func(*trial)
}{
	{"pattern matches nothing", `pattern "model\\.blocks" matches no module`, func(tr *trial) {
		tr.opt.PatternDict = append(tr.opt.PatternDict, catalog.Pattern{Regex: `model\.blocks`, Attrs: []string{}})
	}},
	{"missing attribute", "has no tensor model.layers.0.mlp.gate_proj.weight", func(tr *trial) {
		tr.opt.PatternDict[2].Attrs = append(tr.opt.PatternDict[2].Attrs, "mlp.gate_proj")
	}},
	{"empty list on a block", "has no tensor model.layers.0.weight", func(tr *trial) {
		tr.opt.PatternDict[2].Attrs = []string{}
	}},
	{"matches the whole model", "the whole model", func(tr *trial) {
		tr.opt.PatternDict = catalog.PatternDict{{Regex: ".*", Attrs: []string{"lm_head"}}}
	}},
	{"F32 weight", "is F32, not BF16", func(tr *trial) {
		tr.m.types["model.layers.1.mlp.up_proj.weight"] = safetensors.F32
		tr.m.dims["model.layers.1.mlp.up_proj.weight"] = []int64{32, 16}
	}},
	{"F16 weights", "lm_head.weight is F16, not BF16 (2 of 11 tensors are F16, with 1,184 values)", func(tr *trial) {
		tr.m.types["lm_head.weight"], tr.m.types["model.layers.0.mlp.up_proj.weight"] = "F16", "F16"
	}},
	{"FP8 weight", "is F8_E4M3, not BF16", func(tr *trial) {
		tr.m.types["lm_head.weight"] = "F8_E4M3"
	}},
	{"3-D weight", "has 3 dimensions", func(tr *trial) {
		tr.m.dims["model.layers.0.mlp.up_proj.weight"] = []int64{2, 8, 8}
	}},
	{"colliding file names", "can't both exist", func(tr *trial) {
		tr.m.weight("a.b_c")
		tr.m.weight("a_b.c")
		tr.opt.PatternDict = append(tr.opt.PatternDict, catalog.Pattern{Regex: `a.b.c`, Attrs: []string{}})
	}},
	{"unit named like the remainder", "name of the remainder file", func(tr *trial) {
		tr.m = newModel()
		tr.m.weight("model-00001-of-00002")
		tr.opt.PatternDict = catalog.PatternDict{{Regex: `model-00001-of-00002`, Attrs: []string{}}}
	}},
	{"slash in a unit name", "can't become a file name", func(tr *trial) {
		tr.m.weight("../x")
		tr.opt.PatternDict = append(tr.opt.PatternDict, catalog.Pattern{Regex: `\.\./x`, Attrs: []string{}})
	}},
	{"device name", "a file system may refuse", func(tr *trial) {
		tr.m.weight("aux")
		tr.opt.PatternDict = append(tr.opt.PatternDict, catalog.Pattern{Regex: `aux`, Attrs: []string{}})
	}},
	{"stored name taken", "holds a DF11 tensor already", func(tr *trial) {
		tr.m.add("model.layers.0.self_attn.q_proj.luts", safetensors.U8, 4)
	}},
	{"only units that DF11 cannot hold", "DF11 can hold none", func(tr *trial) {
		tr.m.dims["lm_head.weight"] = []int64{1 << 16, 1 << 15}
		tr.opt.PatternDict = tr.opt.PatternDict[:1]
	}},
	{"tied, stored with other shapes", "different types or shapes", func(tr *trial) {
		tr.config["tie_word_embeddings"] = true
		tr.m.dims["lm_head.weight"] = []int64{32, 16}
		tr.opt.PatternDict = tr.opt.PatternDict[2:]
	}},
	{"tied, only the embedding in the dict", "which is tied to it", func(tr *trial) {
		tr.config["tie_word_embeddings"] = true
		tr.opt.PatternDict = tr.opt.PatternDict[1:]
	}},
	{"DF11 by config", "dfloat11_config", func(tr *trial) {
		tr.config["dfloat11_config"] = map[string]any{}
	}},
	{"FP8 by config", "ECF8", func(tr *trial) {
		tr.config["quantization_config"] = map[string]any{"quant_method": "fp8"}
		tr.m.add("model.layers.0.mlp.up_proj.scales", "F8_E4M3", 4)
	}},
	{"AWQ by tensors", "up_proj.qweight", func(tr *trial) {
		tr.m.add("model.layers.0.mlp.up_proj.qweight", "I32", 4, 4)
	}},
	{"unknown id", "has no entry none/nothing", func(tr *trial) {
		tr.opt = Options{Like: "none/nothing"}
	}},
	{"nothing to derive from", "no stack of blocks to compress; name the modules to compress with --pattern-dict, or use those of a similar model with --like", func(tr *trial) {
		tr.opt, tr.m = Options{}, newModel()
		tr.m.weight("head")
	}},
	{"entry of another layout", "is for the layout diffusers", func(tr *trial) {
		tr.opt = Options{Like: "flux-dev-diffusers"}
	}},
	{"component of no pipeline", "isn't a pipeline", func(tr *trial) { tr.opt.Component = "unet" }},
	{"pipeline as a folder of transformers", "neither model.safetensors", func(tr *trial) {
		*tr = trialOf(pipeline("WanTransformer3DModel"), Options{Layout: catalog.Transformers})
	}},
	{"no such single file", "no file nothing.safetensors", func(tr *trial) {
		*tr = trialOf(fluxComfy("", false), Options{WeightFile: "nothing.safetensors"})
	}},
	{"several single files", "several single files", func(tr *trial) {
		src := fluxComfy("", false)
		src.Files = append(src.Files, File{Path: "flux1-dev-fp8.safetensors"})
		*tr = trialOf(src, Options{})
	}},
	{"tensor in two files", "would both be model.embed_tokens.weight", func(tr *trial) {
		tr.src = func(s Source) Source {
			b := headerFile("b.safetensors", tr.m.tensors(tr.m.names[:1]))
			s.Weights, s.Files = append(s.Weights, b), append(s.Files, b.File, File{Path: "model.safetensors.index.json"})
			s.Weights[0].Path, s.Files[0].Path = "a.safetensors", "a.safetensors"
			s.Index = []byte(`{"weight_map":{"` + tr.m.names[0] + `":"b.safetensors","lm_head.weight":"a.safetensors"}}`)
			return s
		}
	}},
	// Within the limits of a header, and still too much for a plan.
	{"many units", "32769 modules", func(tr *trial) {
		tr.m, tr.opt.PatternDict = newModel(), catalog.PatternDict{{Regex: `model\.layers\.\d+`, Attrs: []string{"up_proj"}}}
		for i := range maxUnits + 1 {
			tr.m.add(fmt.Sprintf("model.layers.%d.up_proj.weight", i), safetensors.BF16, 1, 1)
		}
	}},
	{"config bomb", "read config.json: JSON with more than", func(tr *trial) {
		tr.src = func(s Source) Source { s.Config = []byte(bomb); return s }
	}},
	{"index bomb", "index.json: JSON with more than", func(tr *trial) {
		tr.src = func(s Source) Source {
			s.Files = append(s.Files, File{Path: "model.safetensors.index.json"})
			s.Files[0].Path = "model-00001-of-00001.safetensors"
			s.Index = []byte(`{"weight_map":{` + strings.Repeat(`"":"",`, 500_000) + `"":""}}`)
			return s
		}
	}},
	{"model index bomb", "read model_index.json: JSON with more than", func(tr *trial) {
		src := pipeline("WanTransformer3DModel")
		src.ModelIndex = []byte(bomb)
		*tr = trialOf(src, Options{})
	}},
}

// hints are those of refusals that the tests of the command line don't bring about.
var hints = map[string]hint.Hint{"many units": hint.TooManyUnits, "only units that DF11 cannot hold": hint.TooLarge}

// bomb is JSON whose bytes each take much memory.
var bomb = `{"a":[` + strings.Repeat(`{},`, 600_000) + `{}]}`

// trialOf is a trial of another source.
func trialOf(src Source, opt Options) trial {
	return trial{m: tiny(), opt: opt, src: func(Source) Source { return src }}
}

// TestRefusals makes each change to a model that converts and expects the refusal, at little cost
// and with a hint where one can help.
func TestRefusals(t *testing.T) {
	if _, err := newTrial().plan(); err != nil {
		t.Fatalf("the unchanged model: %v", err)
	}
	for _, r := range refusals {
		t.Run(r.name, func(t *testing.T) {
			tr := newTrial()
			r.change(tr)
			src := tr.source()
			var err error
			// 10% would do, but under the race detector regexes allocate again what they keep
			alloc.Within(t, 512<<20, func() {
				_, err = New(t.Context(), src, tr.opt)
			})
			var refused *RefusedError
			if !errors.As(err, &refused) {
				t.Fatalf("got %v, want a refusal", err)
			}
			if !strings.Contains(refused.Detail+"; "+refused.Hint.String(), r.detail) {
				t.Errorf("refused: %s\nwant …%s…", refused.Detail, r.detail)
			}
			if want, ok := hints[r.name]; ok && refused.Hint != want {
				t.Errorf("hint: %s", refused.Hint)
			}
			if refused.Hint.String() == "" && r.name != "matches the whole model" {
				t.Errorf("%q has no hint", refused.Detail)
			}
		})
	}
}

// TestWeightSets checks which files count as weights, and that contradictions are refused.
func TestWeightSets(t *testing.T) {
	whole, other := tiny().file("model.safetensors"), tiny().file("other.safetensors")
	m := tiny()
	a := headerFile("model-00001-of-00002.safetensors", m.tensors(m.names[:4]))
	b := headerFile("model-00002-of-00002.safetensors", m.tensors(m.names[4:]))
	index := func(first, second string) []byte {
		s := `{"metadata":{"total_size":NaN},"weight_map":{`
		for i, n := range m.names {
			shard := first
			if i >= 4 {
				shard = second
			}
			s += `"` + n + `":"` + shard + `",`
		}
		return []byte(strings.TrimSuffix(s, ",") + "}}")
	}
	good := index(a.Path, b.Path)
	for _, c := range []struct {
		name    string
		files   []WeightFile // all in the source
		headers []WeightFile // given as weights
		index   []byte
		want    string // part of the refusal; "" = accepted
	}{
		{"one file", []WeightFile{whole}, []WeightFile{whole}, nil, ""},
		{"one file next to others", []WeightFile{whole, other}, []WeightFile{whole}, nil, ""},
		{"one file and an index of others", []WeightFile{whole, a, b}, []WeightFile{whole}, good, "two sets of weights"},
		{"two shards", []WeightFile{b, a}, []WeightFile{a, b}, good, ""},
		{"two shards by paths", []WeightFile{a, b}, []WeightFile{a, b}, index("./"+a.Path, "x/../"+b.Path), ""},
		{"an index that lists more", []WeightFile{a, b}, []WeightFile{a, b},
			bytes.Replace(good, []byte(`{"weight_map":{`), []byte(`{"weight_map":{"x.y":"`+a.Path+`",`), 1), ""},
		{"missing shard", []WeightFile{a}, []WeightFile{a}, good, "which the source doesn't have"},
		{"pickled shard", []WeightFile{a, {File: File{Path: "b.bin"}}}, nil, index(a.Path, "b.bin"), "pickle checkpoint"},
		{"shards swapped in the index", []WeightFile{a, b}, []WeightFile{a, b}, index(b.Path, a.Path), "which its file doesn't hold"},
		{"index leaves the folder", []WeightFile{a, b}, nil, index("../x.safetensors", b.Path), "doesn't have"},
		{"empty index", []WeightFile{a, b}, nil, []byte(`{"weight_map":{}}`), "lists no tensors"},
		{"broken index", []WeightFile{a, b}, nil, []byte(`{`), "read model.safetensors.index.json"},
		{"other name only", []WeightFile{other}, nil, nil, "neither model.safetensors nor its index"},
	} {
		t.Run(c.name, func(t *testing.T) {
			src := source(c.files, map[string]any{"tie_word_embeddings": false})
			if c.index != nil {
				src.Index = c.index
				src.Files = append(src.Files, File{Path: "model.safetensors.index.json"})
			}
			src.Weights = c.headers
			p, err := New(t.Context(), src, Options{PatternDict: tinyDict()})
			if more := bytes.Contains(c.index, []byte("x.y")); err == nil && warns(p, "lists 1 tensor that no file holds: x.y") != more {
				t.Errorf("warnings: %q", p.Warnings)
			}
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// look surveys files whose config says nothing.
func look(files []File, opt Options) (*Survey, error) {
	s, err := Look(files, opt)
	if err == nil {
		_, err = s.FindWeights([]byte("{}"))
	}
	return s, err
}

// TestWeightsAreThoseOfTheReader checks which files are the weights if a source has several that may
// be: those that the family's reader loads. A source with two sets is refused, and --file chooses.
func TestWeightsAreThoseOfTheReader(t *testing.T) {
	const shards = " model-00001-of-00002.safetensors model-00002-of-00002.safetensors"
	const index = `{"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}`
	const other = `{"transformers_weights": "other.safetensors"}`
	dif := func(files string) string {
		return strings.ReplaceAll(files, "model", "diffusion_pytorch_model")
	}
	for _, c := range []struct {
		name, files, config, index, file string
		want                             string // the files, or a part of the refusal
	}{
		{"one file", "config.json model.safetensors", "", "", "", "model.safetensors"},
		{"shards", "config.json model.safetensors.index.json" + shards, "", index, "", shards},
		{"both", "config.json model.safetensors model.safetensors.index.json" + shards, "", index, "",
			"model.safetensors.index.json names model-00001-of-00002.safetensors, model-00002-of-00002.safetensors, and there is model.safetensors"},
		{"both, one chosen", "config.json model.safetensors model.safetensors.index.json" + shards, "", index, "model.safetensors", "model.safetensors"},
		{"both, the index chosen", "config.json model.safetensors model.safetensors.index.json" + shards, "", index, "model.safetensors.index.json", shards},
		{"a stale index", "config.json model.safetensors model.safetensors.index.json", "", index, "", "model.safetensors"},
		{"an unreadable index", "config.json model.safetensors model.safetensors.index.json", "", "{", "", "model.safetensors"},
		{"an index of the one file", "config.json model.safetensors model.safetensors.index.json", "", `{"weight_map": {"a": "model.safetensors"}}`, "", "model.safetensors"},
		{"stated", "config.json other.safetensors", other, "", "", "other.safetensors"},
		{"stated, and another", "config.json other.safetensors model.safetensors", other, "", "", "config.json names other.safetensors as the weights, and there is model.safetensors"},
		{"stated, and shards", "config.json other.safetensors model.safetensors.index.json" + shards, other, index, "", "there is model.safetensors.index.json"},
		{"stated, and another chosen", "config.json other.safetensors model.safetensors", other, "", "model.safetensors", "model.safetensors"},
		{"stated, the usual one", "config.json model.safetensors", `{"transformers_weights": "model.safetensors"}`, "", "", "model.safetensors"},
		{"stated, an index", "config.json x.safetensors.index.json" + shards, `{"transformers_weights": "x.safetensors.index.json"}`, index, "", shards},
		{"stated, missing", "config.json model.safetensors", `{"transformers_weights": "../x.safetensors"}`, "", "", "there is model.safetensors"},
		{"stated, missing alone", "config.json x.safetensors", other, "", "", "which the source doesn't have"},
		{"diffusers, both", dif("config.json model.safetensors model.safetensors.index.json" + shards), "", dif(index), "", "there is diffusion_pytorch_model.safetensors"},
		{"diffusers, a stale index", dif("config.json model.safetensors model.safetensors.index.json"), "", dif(index), "", "which the source doesn't have"},
		{"diffusers, an index of the one file", dif("config.json model.safetensors model.safetensors.index.json"), "", dif(`{"weight_map": {"a": "model.safetensors"}}`), "", dif("model.safetensors")},
	} {
		var files []File
		for _, f := range strings.Fields(c.files) {
			files = append(files, File{Path: f})
		}
		s, err := Look(files, Options{WeightFile: c.file})
		var got []File
		var set *WeightSet
		if err == nil {
			set, err = s.FindWeights([]byte(cmp.Or(c.config, "{}")))
		}
		if err == nil {
			got, err = set.Files([]byte(c.index))
		}
		if r, ok := errors.AsType[*RefusedError](err); ok != strings.Contains(c.want, " ") && err != nil || ok && !strings.Contains(r.Detail, c.want) ||
			ok && !strings.Contains(r.Hint.String(), "--file") {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		} else if err == nil && strings.Join(pathsOf(got), " ") != strings.TrimSpace(c.want) {
			t.Errorf("%s: %v, want %s", c.name, got, c.want)
		}
	}
}

// TestFirstFormat checks that a DF11 model of the first format is called by its name.
func TestFirstFormat(t *testing.T) {
	s, err := Look([]File{{Path: "config.json"}, {Path: "layer_0.pkl"}}, Options{})
	if err == nil {
		_, err = s.FindWeights([]byte(`{"dfloat11_version": "0.1.0"}`))
	}
	if err == nil || !strings.Contains(err.Error(), "format 0.1.0") {
		t.Error(err)
	}
}

// TestFileOfAnotherModelIsRefused checks that a named file in a folder with its own config isn't
// planned with the root's config, or without any.
func TestFileOfAnotherModelIsRefused(t *testing.T) {
	for _, file := range []string{"draft/model.safetensors", "depth/diffusion_pytorch_model.safetensors"} {
		files := []File{{Path: "config.json"}, {Path: "model.safetensors"}, {Path: file}}
		if _, err := look(files, Options{WeightFile: file}); err != nil {
			t.Errorf("%s, which has the config of the root: %v", file, err)
		}
		for _, other := range []string{path.Dir(file) + "/config.json", "model_index.json"} {
			s, err := look(append(files, File{Path: other}), Options{WeightFile: file})
			if r := (*RefusedError)(nil); (!errors.As(err, &r) || r.Hint.String() == "") && (s == nil || s.Dir != path.Dir(file)) {
				t.Errorf("%s next to %s: %+v, %v", file, other, s, err)
			}
		}
	}
}

// TestWithoutUsualWeights checks the errors for sources without safetensors weights under the usual
// names. They depend on what is there, and their advice doesn't lead in circles.
func TestWithoutUsualWeights(t *testing.T) {
	for _, c := range []struct {
		files string
		words string // of the refusal or its hint; "" if there is one model
	}{
		{"a.safetensors", ""},
		{"a-00001-of-00001.safetensors", ""},
		{"a.safetensors b.safetensors", "--file"},
		{"a.safetensors config.json", "--file"},
		{"a-00001-of-00002.safetensors a-00002-of-00002.safetensors", "rename the weight file to model.safetensors"},
		{"a-00001-of-00002.safetensors a-00002-of-00002.safetensors config.json", "rename the weight file to model.safetensors"},
		{"consolidated.safetensors params.json", "rename the weight file to model.safetensors"},
		{"model_index.json transformer/model.bin transformer_2/a.safetensors", "re-save"},
		{"model-Q4.gguf config.json", "GGUF"},
		{"pytorch_model.bin config.json", "pickle checkpoint"},
		{"model.ckpt config.json", "pickle checkpoint"},
		{"adapter_model.safetensors config.json", "LoRA"},
		{"model-00001-of-00001.safetensors config.json", ""},
		{"model-00001-of-00002.safetensors model-00002-of-00002.safetensors config.json", ""},
		{"model-00001-of-00003.safetensors model-00003-of-00003.safetensors config.json", "has no model-00002-of-00003.safetensors"},
		{"model-00001-of-00003.safetensors model-00002-of-00003.safetensors config.json", "has no model-00003-of-00003.safetensors"},
		{"model-00002-of-00002.safetensors config.json", "has no model-00001-of-00002.safetensors"},
		{"model-00001-of-00001.safetensors model-00001-of-00002.safetensors model-00002-of-00002.safetensors config.json", "several sets of shards"},
		{"config.json sub/model-00001-of-00002.safetensors sub/model-00002-of-00002.safetensors", "neither model.safetensors nor its index"},
		{"README.md checkpoint-500/model.safetensors checkpoint-500/config.json", "in a folder with a config of its own: checkpoint-500"},
		{"README.md split_files/diffusion_models/a.safetensors", ""},
		{"tokenizer.json config.json", "no safetensors weights"},
		{"config.json README.md", "give the folder or repo that holds"},
	} {
		var files []File
		for _, f := range strings.Fields(c.files) {
			files = append(files, File{Path: f})
		}
		_, err := look(files, Options{})
		r, ok := errors.AsType[*RefusedError](err)
		if (c.words != "" || err != nil) && (!ok || !strings.Contains(r.Detail+r.Hint.String(), c.words)) {
			t.Errorf("%s: %v", c.files, err)
		}
	}
}

// TestLeftoverQuantization checks that the plan ignores a config that calls weights quantized if no
// tensor can be, and says so.
func TestLeftoverQuantization(t *testing.T) {
	for name, isPlain := range map[string]bool{"BF16": true, "F32": true, "I64": true, "BOOL": true,
		"U8": false, "I8": false, "I32": false, "F4": false, "F6_E2M3": false, "F8_E4M3": false} {
		tr := newTrial()
		tr.config["quantization_config"] = map[string]any{"quant_method": "new"}
		tr.m.add("model.extra", safetensors.DType(name), 4, 4)
		p, err := tr.plan()
		switch {
		case isPlain && (err != nil || !warns(p, "(quantization_config), but none is")):
			t.Errorf("%s: %v", name, err)
		case !isPlain && (err == nil || !strings.Contains(err.Error(), "is quantized")):
			t.Errorf("%s: %v", name, err)
		}
	}
}
