package plan

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// fluxComfy is a ComfyUI checkpoint with a text encoder next to the diffusion model.
func fluxComfy(prefix string, checkpoint bool) Source {
	m := newModel()
	for _, n := range []string{"img_mod.lin", "img_attn.qkv", "img_attn.proj", "img_mlp.0", "img_mlp.2", "txt_mod.lin",
		"txt_attn.qkv", "txt_attn.proj", "txt_mlp.0", "txt_mlp.2"} {
		m.weight(prefix + "double_blocks.0." + n)
	}
	for _, n := range []string{"linear1", "linear2", "modulation.lin"} {
		m.weight(prefix + "single_blocks.0." + n)
	}
	m.weight(prefix + "img_in")
	m.weight(prefix + "guidance_in.in_layer")
	if checkpoint {
		m.weight("text_encoders.clip_l.embed")
	}
	return source([]WeightFile{m.file("flux1-dev.safetensors")}, nil)
}

// TestComfyUI plans single files: prefix stripped, one output file, no config.
func TestComfyUI(t *testing.T) {
	for _, prefix := range []string{"", "model.diffusion_model.", "diffusion_model."} {
		p := mustPlan(t, fluxComfy(prefix, prefix != ""), Options{})
		checkWhole(t, p)
		if len(p.OutputFiles) != 1 || p.OutputFiles[0].Path != "flux1-dev-DF11.safetensors" || p.OutputFiles[0].Metadata != nil {
			t.Errorf("output files %+v", p.OutputFiles)
		}
		if p.Entry != "flux-comfyui" || p.Config != "" || p.Units[0].Path != "double_blocks.0" {
			t.Errorf("entry %s, config %s, first unit %s", p.Entry, p.Config, p.Units[0].Path)
		}
		if a := p.Units[0].Attrs[0]; a.Name != "double_blocks.0.img_mod.lin.weight" || a.Source != prefix+a.Name {
			t.Errorf("first attribute %+v", a)
		}
		if (len(p.Dropped) == 1) != (prefix != "") {
			t.Errorf("prefix %q: dropped %v", prefix, p.Dropped)
		}
	}
}

// pipeline is a diffusers pipeline with a sharded transformer and other components.
func pipeline(class string) Source {
	m := newModel()
	for _, n := range []string{"attn1.to_q", "attn1.to_k", "attn1.to_v", "attn1.to_out.0", "attn2.to_q", "attn2.to_k", "attn2.to_v",
		"attn2.to_out.0", "ffn.net.0.proj", "ffn.net.2"} {
		for i := range 3 {
			m.weight(fmt.Sprintf("blocks.%d.%s", i, n))
		}
	}
	m.add("blocks.0.scale_shift_table", safetensors.F32, 1, 6, 16)
	m.weight("condition_embedder.time_proj")
	a := headerFile("transformer/diffusion_pytorch_model-00001-of-00002.safetensors", m.tensors(m.names[:9]))
	b := headerFile("transformer/diffusion_pytorch_model-00002-of-00002.safetensors", m.tensors(m.names[9:]))
	src := source([]WeightFile{a, b}, nil, "transformer/diffusion_pytorch_model.safetensors.index.json",
		"model_index.json", "transformer/config.json", "README.md", "wan.safetensors",
		"text_encoder/config.json", "text_encoder/model-00001-of-00002.safetensors", "text_encoder/model-00002-of-00002.safetensors",
		"text_encoder/model.safetensors.index.json", "text_encoder/model.fp16.safetensors", "text_encoder/pytorch_model.bin",
		"tokenizer/spiece.model", "vae/diffusion_pytorch_model.safetensors", "vae/config.json", "extra/model.safetensors")
	src.Index = []byte(`{"weight_map": {"blocks.0.attn1.to_q.weight": "diffusion_pytorch_model-00001-of-00002.safetensors",
		"condition_embedder.time_proj.weight": "diffusion_pytorch_model-00002-of-00002.safetensors"}}`)
	src.Config = fmt.Appendf(nil, `{"_class_name": %q}`, class)
	src.ModelIndex = []byte(`{"_class_name": "WanPipeline", "transformer": ["diffusers", "X"], "text_encoder": ["a", "b"],
		"tokenizer": ["a", "b"], "vae": ["a", "b"], "transformer_2": [null, null]}`)
	return src
}

// TestPipeline converts the transformer of a pipeline and carries the other components over.
func TestPipeline(t *testing.T) {
	p := mustPlan(t, pipeline("WanTransformer3DModel"), Options{})
	checkWhole(t, p)
	if p.Entry != "wan-diffusers" || p.Layout != catalog.Diffusers || p.Config != "" {
		t.Errorf("entry %s, layout %s, config %q", p.Entry, p.Layout, p.Config)
	}
	const components = "text_encoder/model-00001-of-00002.safetensors text_encoder/model-00002-of-00002.safetensors " +
		"text_encoder/model.safetensors.index.json vae/diffusion_pytorch_model.safetensors"
	if got := filePaths(p.Components); got != components {
		t.Errorf("components %s", got)
	}
	const copied = "model_index.json text_encoder/config.json tokenizer/spiece.model transformer/config.json vae/config.json"
	if got := filePaths(p.Copied); got != copied {
		t.Errorf("copied %s", got)
	}
	if got := p.OutputFiles[len(p.OutputFiles)-1].Path; got != "remainder.safetensors" {
		t.Errorf("remainder in %s", got)
	}
	if len(p.Differences) != 1 || !strings.Contains(p.Differences[0], "plain F32 tensor in a BF16 model") {
		t.Errorf("no difference says that the F32 table stays: %q", p.Differences)
	}
}

// TestPipelineSaysWhatItLacks checks for a warning that names components that are missing or have
// no weights to copy, unless the pipeline doesn't need them.
func TestPipelineSaysWhatItLacks(t *testing.T) {
	for _, c := range []struct{ index, lacks string }{
		{`{"transformer": ["a", "b"], "text_encoder": ["a", "b"], "vae": ["a", "b"]}`, ""},
		{`{"transformer": ["a", "b"], "text_encoder": ["a", "b"], "extra": ["a", "b"]}`, ""},
		{`{"text_encoder": ["a", "b"], "checker": [null, null], "_note": ["a", "b"], "checker/deep": ["a", "b"]}`, ""},
		{`{"text_encoder": ["a", "b"], "checker": ["a", "b"], "vae": true, "fp16": ["a", "b"]}`, "usual names: checker, fp16"},
		{`{"text_encoder": ["a", "b"], "text_encoder_2": ["a", "b"], "no_2": [null, null], "force": true}`, "usual names: text_encoder_2"},
	} {
		src := pipeline("WanTransformer3DModel")
		src.ModelIndex = []byte(c.index)
		for _, name := range []string{"checker/pytorch_model.bin", "checker/deep/model.bin", "_note/model.bin", "fp16/model.fp16.safetensors"} {
			src.Files = append(src.Files, File{Path: name, Size: 1})
		}
		p := mustPlan(t, src, Options{})
		if warns(p, "the pipeline doesn't load") != (c.lacks != "") || c.lacks != "" && !warns(p, c.lacks) {
			t.Errorf("%s: %q", c.index, p.Warnings)
		}
	}
}

// TestPipelineLosesNoWeights checks that a pipeline with a DF11 root is refused, whichever folder
// is named, that a DF11 component is carried over with all its units, and that a second model of
// the converted class is named first.
func TestPipelineLosesNoWeights(t *testing.T) {
	src := pipeline("WanTransformer3DModel")
	src.ModelIndex = []byte(`{"transformer": ["a", "W"], "transformer_2": ["a", "W"], "text_encoder": ["a", "b"], "vae": ["a", "b"]}`)
	for _, name := range []string{"transformer_2/diffusion_pytorch_model.safetensors", "vae/up_0.safetensors", "vae/model.fp16.safetensors"} {
		src.Files = append(src.Files, File{Path: name, Size: 1000})
	}
	p := mustPlan(t, src, Options{})
	if got := filePaths(p.Components); !strings.Contains(got, "vae/up_0.safetensors") || strings.Contains(got, "fp16") {
		t.Errorf("components %s", got)
	}
	if got := p.Stays(); !strings.HasPrefix(got, "transformer_2 stays BF16") {
		t.Errorf("gain %s", got)
	}
	src.Files = append(src.Files, File{Path: "config.json", Size: 9})
	src.RootConfig = []byte(`{"dfloat11_config": {}}`)
	_, err := New(t.Context(), src, Options{})
	if r := (*RefusedError)(nil); !errors.As(err, &r) || !strings.Contains(r.Detail, "a DF11 model already") {
		t.Errorf("a DF11 pipeline: %v", err)
	}
}

// TestPipelineLayouts overrides the layout within its family.
func TestPipelineLayouts(t *testing.T) {
	p := mustPlan(t, pipeline("WanTransformer3DModel"), Options{Layout: catalog.DiffusersSingle})
	if len(p.OutputFiles) != 1 || p.OutputFiles[0].Path != "df11.safetensors" || len(p.OutputFiles[0].Units) != 3 {
		t.Errorf("output files %+v", p.OutputFiles)
	}
}

// TestDerivedLanguageModel derives the published dict of a Llama under another name, and leaves out
// what is no Linear.
func TestDerivedLanguageModel(t *testing.T) {
	m := newModel()
	m.add("model.embed_tokens.weight", safetensors.BF16, 64, 16)
	for i := range 12 {
		l := fmt.Sprintf("model.layers.%d.", i)
		for _, a := range []string{"mlp.down_proj", "mlp.gate_proj", "mlp.up_proj", "self_attn.k_proj", "self_attn.o_proj",
			"self_attn.q_proj", "self_attn.v_proj"} {
			if i == 11 && a == "mlp.gate_proj" {
				continue
			}
			m.weight(l + a)
		}
		m.add(l+"mlp.gate.weight", safetensors.BF16, 8, 16)     // router: as many rows as experts
		m.add(l+"conv.weight", safetensors.BF16, 16, 4, 4)      // 3-D
		m.add(l+"pos_embed.weight", safetensors.BF16, 32, 16)   // table
		m.add(l+"norm.weight", safetensors.BF16, 16)            // 1-D
		m.add(l+"scorer.weight", safetensors.BF16, 1, 16)       // one row
		m.add(l+"bare_parameter", safetensors.BF16, 16, 16)     // no .weight
		m.add(l+"high_precision.weight", safetensors.F32, 9, 9) // not BF16
	}
	m.add("lm_head.weight", safetensors.BF16, 64, 16)
	src := source([]WeightFile{m.file("model.safetensors")}, map[string]any{
		"model_type": "novel", "architectures": []string{"NovelForCausalLM"}, "num_local_experts": 8, "tie_word_embeddings": false,
		"num_hidden_layers": 12,
	})
	p := mustPlan(t, src, Options{})
	const want = `{"lm_head": [], "model\\.embed_tokens": [], ` +
		`"model\\.layers\\.([0-9]|10)": ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", ` +
		`"mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"], ` +
		`"model\\.layers\\.11": ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", ` +
		`"mlp.up_proj", "mlp.down_proj"]}`
	if got := p.PatternDict.JSON("", ""); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if p.Loader.Via != "AutoModelForCausalLM" {
		t.Errorf("loader %+v", p.Loader)
	}
}
