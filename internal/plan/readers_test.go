package plan

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/safetensors"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// TestForeignNames checks that names of another class than the source states can be planned, but
// that no reader that builds the stated class counts as compatible. The model's own code may define
// the class again.
func TestForeignNames(t *testing.T) {
	comfy := newModel()
	language := newModel()
	for i := range 2 {
		comfy.weight(fmt.Sprintf("double_blocks.%d.img_attn.qkv", i))
		language.weight(fmt.Sprintf("decoder.h.%d.attn.q_proj", i))
	}
	for _, c := range []struct {
		name   string
		file   WeightFile
		config map[string]any
		class  string // named in the reason; "" if the official loader may load it
	}{
		{"diffusers class", comfy.file("diffusion_pytorch_model.safetensors"), map[string]any{"_class_name": "FluxTransformer2DModel"}, "FluxTransformer2DModel"},
		{"unknown diffusers class", comfy.file("diffusion_pytorch_model.safetensors"), map[string]any{"_class_name": "NewTransformer2DModel"}, ""},
		{"transformers class", language.file("model.safetensors"), map[string]any{"model_type": "llama", "architectures": []string{"LlamaForCausalLM"}}, "LlamaForCausalLM"},
		{"bare class", language.file("model.safetensors"), map[string]any{"model_type": "modernbert", "architectures": []string{"ModernBertModel"}}, ""},
		{"class of the model's own", language.file("model.safetensors"), map[string]any{"model_type": "llama", "architectures": []string{"LlamaForCausalLM"}, "auto_map": map[string]any{}}, ""},
	} {
		for _, dict := range []catalog.PatternDict{nil, {{Regex: `(double_blocks|decoder\.h)\.\d+`, Attrs: []string{strings.SplitN(c.file.Header.Tensors[0].Name, ".0.", 2)[1]}}}} {
			if dict != nil {
				dict[0].Attrs[0] = strings.TrimSuffix(dict[0].Attrs[0], ".weight")
			}
			p, err := New(t.Context(), source([]WeightFile{c.file}, c.config), Options{PatternDict: dict})
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			for _, r := range p.Readers {
				if r.Loads != Refuses && c.class != "" || r.Name == "dfloat11" && !strings.Contains(r.Why, c.class) {
					t.Errorf("%s, dict %v: %s loads it %v: %s", c.name, dict != nil, r.Name, r.Loads, r.Why)
				}
			}
		}
	}
}

// TestComfyUIGoesByShapes checks that ComfyUI makes another class of FLUX.1 Fill than of FLUX.1
// dev, although all names are the same. Its node has no dict for that class, whatever --like says.
// HunyuanVideo has FLUX's blocks. Each ComfyUI entry has a line in the table of what was tried.
func TestComfyUIGoesByShapes(t *testing.T) {
	for name, c := range map[string]struct {
		columns int64 // of img_in
		like    string
		want    Verdict
	}{
		"dev": {64, "", Loads}, "Depth": {128, "", Loads}, "Fill": {384, "", Refuses}, "Fill as dev": {384, "flux-comfyui", Untested},
		"Hunyuan": {0, "", Refuses},
	} {
		src := synth(t, catalog.Find("flux-comfyui"), false)
		for i, tensor := range src.Weights[0].Header.Tensors {
			switch isInput := strings.HasSuffix(tensor.Name, ".img_in.weight"); {
			case isInput && c.columns > 0:
				src.Weights[0].Header.Tensors[i].Shape = []int64{16, c.columns}
			case isInput:
				src.Weights[0].Header.Tensors[i].Name = strings.Replace(tensor.Name, "img_in", "img_in.proj", 1)
			}
		}
		if got := mustPlan(t, src, Options{Like: c.like}).Readers[1]; got.Loads != c.want {
			t.Errorf("%s: %+v, want %s", name, got, c.want)
		}
	}
	for name, change := range map[string]func(*safetensors.Tensor){ // of SDXL
		"SSD-1B": func(x *safetensors.Tensor) { x.Name = strings.Replace(x.Name, "middle_block.1.", "middle_block.2.", 1) },
		"SVD": func(x *safetensors.Tensor) {
			if strings.HasSuffix(x.Name, "label_emb.0.0.weight") {
				x.Shape = []int64{16, 768}
			}
		},
	} {
		src := synth(t, catalog.Find("sdxl-comfyui"), false)
		for i := range src.Weights[0].Header.Tensors {
			change(&src.Weights[0].Header.Tensors[i])
		}
		if got := mustPlan(t, src, Options{}).Readers[1]; got.Loads != Refuses {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for _, e := range catalog.All() {
		class, result, why := e.InComfy()
		isKnown := class != "" && slices.Contains([]string{"equal", "read", "no"}, result) && (why != "") == (result == "no")
		if (e.Layout == catalog.ComfyUI) != isKnown {
			t.Errorf("%s: class %q, result %q, why %q", e.ID, class, result, why)
		}
	}
}

// TestYesIsWhatWasTried checks that the official loader counts as compatible exactly for classes
// and model types whose tiny model came out equal. So each "yes" has its line in tried.txt, and
// each equal line is a "yes".
func TestYesIsWhatWasTried(t *testing.T) {
	t.Parallel()
	// by class and type, of models that transformers 4 has saved, if it can: what came of the row that
	// fits a model without experts, the first
	equal := map[string]bool{}
	fitting := map[string]string{}
	for _, c := range catalog.AllTried() {
		for _, r := range c.Results[OfficialReader] {
			if !slices.Contains([]string{"equal", "tied", "untied", "no", "-"}, r) || r != "no" && r != "-" && len(c.Modules) == 0 {
				t.Errorf("%s %s: result %q with the modules %v", c.Class, c.ModelType, r, c.Modules)
			}
		}
		results := c.Results[OfficialReader][:2]
		if facts := catalog.FactsOf(c.Class); facts.IsNew {
			results = c.Results[OfficialReader][2:]
		}
		key := c.Class + " " + c.ModelType
		if fitting[key] = cmp.Or(fitting[key], c.Experts); fitting[key] != c.Experts {
			continue
		}
		equal[key] = equal[key] || slices.ContainsFunc(results, func(r string) bool { return r != "no" && r != "-" })
	}
	n := 0
	for _, e := range catalog.All() {
		if e.LikeOnly || e.Refuse != nil || e.Layout.Family() == catalog.ComfyUI {
			continue
		}
		for _, class := range slices.Concat(e.Match.Architectures, e.Match.ClassName) {
			for _, modelType := range append(e.Match.ModelType, "")[:max(1, len(e.Match.ModelType))] {
				one := *e
				one.Match.Architectures, one.Match.ModelType = []string{class}, []string{modelType}
				src := synth(t, &one, mustBeTied(e))
				p := mustPlan(t, loadable(t, src, mustPlan(t, src, Options{})), Options{})
				key := class + " " + modelType
				switch got := p.Readers[0]; {
				case (got.Loads == Loads) != equal[key]:
					t.Errorf("%s, %s: %s (%s), tried: %v", e.ID, key, got.Loads, got.Why, equal[key])
				case got.Loads == Loads:
					n++
				}
			}
		}
	}
	if n < 80 {
		t.Errorf("only %d classes of the catalog were loaded", n)
	}
}

// loadable returns a source without the plain tensors of its plan that its class doesn't load.
func loadable(t *testing.T, src Source, p *Plan) Source {
	t.Helper()
	if src.Config == nil {
		return src
	}
	cfg, err := catalog.ReadConfig("config.json", src.Config)
	if err != nil {
		t.Fatal(err)
	}
	drop := map[string]bool{}
	for _, x := range p.plainTensors() {
		drop[x.Source] = !slices.ContainsFunc(catalog.AllTried(), func(row catalog.Tried) bool {
			return row.Class == cfg.Class() && row.Loads(x.Name, cfg)
		})
	}
	h := *src.Weights[0].Header
	h.Tensors = slices.DeleteFunc(slices.Clone(h.Tensors), func(x safetensors.Tensor) bool { return drop[x.Name] })
	src.Weights = []WeightFile{{File: src.Weights[0].File, Header: &h}}
	return src
}

// TestLoadsSaysWhatWasTried checks that "yes" is said only of a model that the tried class takes as
// it is, and that anything else has its reason.
func TestLoadsSaysWhatWasTried(t *testing.T) {
	made := planEntry(t, catalog.Find("llama-untied-escaped"), false)
	base := loadable(t, made.src, made.plan)
	with := func(name string, shape ...int64) func(*Source) {
		return func(s *Source) {
			h := *s.Weights[0].Header
			last := h.Tensors[len(h.Tensors)-1].End
			x := safetensors.Tensor{Name: name, DType: safetensors.BF16, Shape: shape, Begin: last}
			x.End = last + 2*x.NElems()
			h.Tensors = append(slices.Clone(h.Tensors), x)
			s.Weights = []WeightFile{{File: s.Weights[0].File, Header: &h}}
		}
	}
	config := func(member string) func(*Source) {
		return func(s *Source) { s.Config = append([]byte("{"+member+", "), s.Config[1:]...) }
	}
	both := func(a, b func(*Source)) func(*Source) { return func(s *Source) { a(s); b(s) } }
	for name, c := range map[string]struct {
		change func(*Source)
		want   Verdict
		why    string
	}{
		"as it is":     {func(*Source) {}, Loads, "a tiny model of this class loaded, every bit equal"},
		"a buffer":     {with("model.rotary_emb.inv_freq", 8), Untested, "no tensor of the name model.rotary_emb.inv_freq"},
		"an attribute": {with("model.layers.0.self_attn.scaling", 1), Untested, "no tensor of the name model.layers.0.self_attn.scaling"},
		"a bias":       {with("model.layers.0.self_attn.q_proj.bias", 8), Untested, "q_proj.bias"},
		"a bias by the config": {both(both(both(with("model.layers.0.self_attn.q_proj.bias", 8), with("model.layers.0.self_attn.k_proj.bias", 8)),
			both(with("model.layers.0.self_attn.v_proj.bias", 8), with("model.layers.0.self_attn.o_proj.bias", 8))), config(`"attention_bias": true`)), Loads, ""},
		"one bias of four":   {both(with("model.layers.0.self_attn.q_proj.bias", 8), config(`"attention_bias": true`)), Untested, "has attention_bias, but the source has no model.layers.#.self_attn.k_proj.bias"},
		"no bias":            {config(`"attention_bias": true`), Untested, "has attention_bias"},
		"another vocabulary": {config(`"vocab_size": 999`), Untested, "isn't what config.json says of its vocab_size"},
		"a head of other rows": {both(config(`"vocab_size": 64`), func(s *Source) {
			h := *s.Weights[0].Header
			h.Tensors = slices.Clone(h.Tensors)
			i := slices.IndexFunc(h.Tensors, func(x safetensors.Tensor) bool { return x.Name == "lm_head.weight" })
			x := &h.Tensors[i]
			x.Shape = []int64{x.Shape[0] * 2, x.Shape[1] / 2}
			s.Weights = []WeightFile{{File: s.Weights[0].File, Header: &h}}
		}), Untested, "lm_head.weight has 128 rows"},
		"another inner width":   {config(`"intermediate_size": 999`), Untested, "gate_proj.weight has "},
		"other heads":           {config(`"num_attention_heads": 999`), Untested, "q_proj.weight has "},
		"other keys":            {config(`"num_attention_heads": 5, "head_dim": 2, "num_key_value_heads": 999`), Untested, "k_proj.weight has "},
		"too many heads":        {config(`"other_attention_heads": [` + strings.TrimSuffix(strings.Repeat("1,2,3,", 9), ",") + `], "b_attention_heads": [` + manyNumbers() + `]`), Untested, "q_proj.weight has "},
		"layers as a text":      {config(`"num_hidden_layers": "3", "x": 1`), Untested, "how many layers"},
		"no number of layers":   {config(`"x": 1`), Untested, "how many layers"},
		"own code":              {config(`"auto_map": {"AutoModelForCausalLM": "x.LlamaForCausalLM"}`), Untested, "has auto_map"},
		"another config":        {config(`"configuration_files": ["config.4.0.0.json"]`), Untested, "has configuration_files"},
		"another width":         {config(`"hidden_size": 32`), Untested, "model.embed_tokens.weight is 16 wide, but config.json has 32"},
		"fewer layers":          {config(`"num_hidden_layers": 2, "x": 1`), Refuses, "counts 2 layers, so the class doesn't build model.layers.2"},
		"a byte order mark":     {func(s *Source) { s.Config = append([]byte("\xef\xbb\xbf"), s.Config...) }, Refuses, "byte order mark"},
		"another type":          {config(`"model_type": "mistral", "y": 1`), Untested, "class LlamaForCausalLM"},
		"a type in capitals":    {config(`"model_type": "Llama", "y": 1`), Untested, "class LlamaForCausalLM"},
		"no type at all":        {config(`"y": 1`), Untested, "class LlamaForCausalLM"},
		"another class":         {config(`"architectures": ["LlamaForSequenceClassification"], "model_type": "llama"`), Untested, ""},
		"null instead of a map": {config(`"auto_map": null`), Loads, ""},
	} {
		src := base
		c.change(&src)
		if strings.Contains(name, "fewer") || strings.Contains(name, "layers as") || strings.Contains(name, "of layers") { // of equal members, the last counts
			src.Config = bytes.Replace(src.Config, []byte(`"num_hidden_layers":3`), []byte(`"z":3`), 1)
		}
		if name == "another class" {
			src.Config = bytes.Replace(src.Config, []byte(`"architectures":["LlamaForCausalLM"]`), []byte(`"z":3`), 1)
		}
		if strings.Contains(name, "type") {
			src.Config = bytes.Replace(src.Config, []byte(`"model_type":"llama"`), []byte(`"z":3`), 1)
		}
		p, err := New(t.Context(), src, Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if r := p.Readers[0]; r.Loads != c.want || !strings.Contains(r.Why, c.why) {
			t.Errorf("%s: %+v, want %s: %s", name, r, c.want, c.why)
		}
	}
}

// TestSwitchedNames checks diffusers' classes that have some tensors only with a switch of the config:
// with the switch, such a model is a "yes"; without it, it's untested, and no reader says more than
// that no tried model had the tensor.
func TestSwitchedNames(t *testing.T) {
	t.Parallel()
	turned := map[string]bool{}
	for _, e := range catalog.All() {
		if e.LikeOnly || e.Refuse != nil || e.Layout != catalog.Diffusers {
			continue
		}
		src := synth(t, e, false)
		src = loadable(t, src, mustPlan(t, src, Options{}))
		if mustPlan(t, src, Options{}).Readers[0].Loads != Loads {
			continue
		}
		for member, tensors := range switchesOf(e) {
			extra := withTensors(src, tensors)
			for _, r := range mustPlan(t, extra, Options{}).Readers {
				if r.Name != ComfyReader && (r.Loads != Untested || !strings.Contains(r.Why, "tiny models that we tried with such a config have no tensor of the name ")) {
					t.Errorf("%s without %s: %+v", e.ID, member, r)
				}
			}
			extra.Config = append([]byte("{"+member+", "), extra.Config[1:]...)
			for _, r := range mustPlan(t, extra, Options{}).Readers {
				if r.Name != ComfyReader && r.Loads != Loads {
					t.Errorf("%s with %s and %v: %+v", e.ID, member, tensors, r)
				}
			}
			turned[e.Match.ClassName[0]+" "+member] = true
		}
	}
	for _, want := range []string{
		`FluxTransformer2DModel "guidance_embeds": true`, `SD3Transformer2DModel "qk_norm": "on"`,
		`WanTransformer3DModel "image_dim": 8`, `WanTransformer3DModel "added_kv_proj_dim": 8`,
	} {
		if !turned[want] {
			t.Errorf("not tried: %s", want)
		}
	}
}

// switchesOf returns the uncompressed tensors that an entry's class has only with a member of the
// config, by that member.
func switchesOf(e *catalog.Entry) map[string][]string {
	switches := map[string][]string{}
	for _, row := range catalog.AllTried() {
		for _, word := range row.Names() {
			name, member, ok := strings.Cut(word, "?")
			if row.Class != e.Match.ClassName[0] || !ok || slices.ContainsFunc(e.PatternDict, func(p catalog.Pattern) bool {
				return slices.ContainsFunc(p.Attrs, func(attr string) bool {
					return strings.HasSuffix(strings.ReplaceAll(name, "#", "0"), "."+attr+".weight")
				})
			}) {
				continue
			}
			key, isNot := strings.CutPrefix(member, "!")
			value := fmt.Sprint(!isNot)
			switch {
			case key == "qk_norm":
				value = `"on"`
			case strings.HasSuffix(key, "_dim") || strings.HasSuffix(key, "_len"):
				value = "8"
			case strings.HasSuffix(key, "_layers"):
				value = "[0]"
			}
			member = fmt.Sprintf("%q: %s", key, value)
			switches[member] = append(switches[member], strings.ReplaceAll(name, "#", "0"))
		}
	}
	return switches
}

// withTensors adds vectors to a source.
func withTensors(src Source, names []string) Source {
	h := *src.Weights[0].Header
	h.Tensors = slices.Clone(h.Tensors)
	for _, name := range names {
		begin := h.Tensors[len(h.Tensors)-1].End
		h.Tensors = append(h.Tensors, safetensors.Tensor{Name: name, DType: safetensors.BF16, Shape: []int64{8}, Begin: begin, End: begin + 16})
	}
	src.Weights = []WeightFile{{File: src.Weights[0].File, Header: &h}}
	return src
}

// manyNumbers are more than a real config has.
func manyNumbers() string {
	var b strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&b, "%d,", i)
	}
	return strings.TrimSuffix(b.String(), ",")
}

// TestUntriedIsNeverNo checks each row of tried.txt, and each version that saved a model: the
// official loader refuses it only if no result is missing and none is equal.
func TestUntriedIsNeverNo(t *testing.T) {
	for _, row := range catalog.AllTried() {
		for version, results := range map[string][]string{`"4.57.1"`: row.Results[OfficialReader][:2], `"5.2.0"`: row.Results[OfficialReader][2:]} {
			cfg := &catalog.Config{Architectures: []string{row.Class}, ModelType: row.ModelType,
				Raw: catalog.Members{"transformers_version": []byte(version)}}
			o := &output{division: &division{}, from: &reading{cfg: cfg, facts: cfg.Facts()}, model: &recognition{}}
			if o.from.facts.IsNew {
				results = row.Results[OfficialReader][2:]
			}
			for _, name := range row.Names() {
				switch name = strings.ReplaceAll(name, "#", "0"); {
				case slices.Contains(headNames, catalog.Parent(name)):
					o.remainder = append(o.remainder, Tensor{Name: name})
				case row.Experts == "fused" && strings.HasSuffix(name, ".experts.down_proj"):
					o.remainder = append(o.remainder, Tensor{Name: name, Shape: []int64{1, 1, 1}})
				}
			}
			isUntried := slices.Contains(results, "-")
			tiny := findPrecedent(o)
			if got := tiny.verdict(OfficialReader); isUntried && got == Refuses || slices.Contains(results, "equal") && got != Loads {
				t.Errorf("%s %s, saved by %s: %v says %s", row.Class, row.ModelType, version, results, got)
			}
		}
	}
}

// TestNodeVersion checks that the version of ComfyUI's node is the commit at which the catalog's
// comfy.txt tried it.
func TestNodeVersion(t *testing.T) {
	tried := world.Read(t, "../catalog/comfy.txt")
	for _, p := range programs {
		if p.name == ComfyReader && !bytes.Contains(tried, []byte(p.name+" at "+p.version)) {
			t.Errorf("%s %s isn't what comfy.txt tried", p.name, p.version)
		}
	}
}

// TestVersions checks which versions of transformers load a model, by the version that saved it and
// the results of both.
func TestVersions(t *testing.T) {
	for _, c := range []struct{ entry, savedBy, verdict, versions string }{
		{"olmo2", "4.57.1", "yes", ">=4.51"},
		{"olmo2", "5.2.0", "yes", ">=5"},
		{"qwen3-moe", "4.57.1", "yes", ">=4.51,<5"},
		{"qwen3-moe", "5.2.0", "no", ">=5"},
		{"clip-text", "", "yes", "<5"},
		{"clip-text", "5.2.0", "yes", ">=5"},
		{"qwen3_5-text", "4.57.0.dev0", "yes", ">=5"},
		{"internlm2", "4.41.0", "untested", "<5"},
		{"internlm2", "5.2.0", "untested", ">=5"},
	} {
		e := catalog.Find(c.entry)
		made := planEntry(t, e, mustBeTied(e))
		src := loadable(t, made.src, made.plan)
		src.Config = append(fmt.Appendf(nil, `{"transformers_version": %q, `, c.savedBy), src.Config[1:]...)
		p := mustPlan(t, src, Options{})
		if got := p.Readers[0]; string(got.Loads) != c.verdict || p.Loader.Transformers != c.versions {
			t.Errorf("%s, saved by %q: %s with %q, want %s with %q", c.entry, c.savedBy, got.Loads, p.Loader.Transformers, c.verdict, c.versions)
		}
	}
}

// TestNewClassNeedsNewTransformers checks that a class that transformers 4 doesn't have is said to need
// version 5, also if no model with these modules was tried.
func TestNewClassNeedsNewTransformers(t *testing.T) {
	m := newModel()
	for i := range 2 {
		m.weight(fmt.Sprintf("model.layers.%d.self_attn.o_proj", i))
	}
	const class = "GlmMoeDsaForCausalLM"
	if f := catalog.FactsOf(class); !f.IsNew {
		t.Fatalf("%s isn't a new class", class)
	}
	p := mustPlan(t, source([]WeightFile{m.file("model.safetensors")}, map[string]any{"architectures": []string{class}}), Options{})
	if r := p.Readers[0]; r.Loads != Untested || p.Loader.Transformers != ">=5" || !strings.Contains(r.Why, "transformers >=5") {
		t.Errorf("%q: %+v", p.Loader.Transformers, r)
	}
}

// TestOwnCode checks that building a class that comes with the model takes trust in its code,
// unless the library's own class was tried.
func TestOwnCode(t *testing.T) {
	for id, want := range map[string]bool{"olmo2": false, "internlm2": true} {
		e := catalog.Find(id)
		src := synth(t, e, false)
		src.Config = append([]byte(`{"auto_map": {"AutoModelForCausalLM": "modeling.X",
			"AutoTokenizer": ["slow.T", null], "AutoModelForTokenClassification": "other.Y"}, `), src.Config[1:]...)
		p := mustPlan(t, src, Options{})
		if p.Loader.RemoteCode != want || slices.Contains(p.Code.Missing, "modeling.py") != want || len(p.Code.Repos) > 0 {
			t.Errorf("%s: %+v, %+v", id, p.Loader, p.Code)
		}
		src.Files = append(slices.Clone(src.Files), File{Path: "modeling.py", Size: 1})
		if p := mustPlan(t, src, Options{}); len(p.Code.Missing) > 0 {
			t.Errorf("%s: %v is missing, but the model's class is copied, and needs no other", id, p.Code.Missing)
		}
		src.Config = append([]byte(`{"part": {"auto_map": {"AutoModel": ["them/theirs--m.C", null]}}, `), src.Config[1:]...)
		p = mustPlan(t, src, Options{})
		if !slices.Equal(p.Code.Repos, []string{"them/theirs"}) || !strings.Contains(strings.Join(p.Warnings, "\n"), "code of them/theirs") {
			t.Errorf("%s: code of %v, warnings %q", id, p.Code.Repos, p.Warnings)
		}
	}
}

// TestExpertsDecide checks that the result of a class with separate experts doesn't count for one
// with fused experts, or the other way round.
func TestExpertsDecide(t *testing.T) {
	fused, separate := Tensor{Name: "l.0.experts.down_proj", Shape: []int64{4, 8, 8}}, Tensor{Name: "l.0.experts.3.down_proj.weight"}
	for _, c := range []struct {
		is   division
		want map[string]bool // by how the experts of the model that was tried were stored
	}{
		{division{units: []Unit{{Path: "l.0", Siblings: []Tensor{fused}}}}, map[string]bool{"fused": true}},
		{division{units: []Unit{{Path: "l.0", Attrs: []Tensor{separate}}}}, map[string]bool{"separate": true}},
		{division{units: []Unit{{Path: "l.0"}}}, map[string]bool{"fused": true, "separate": true}},
	} {
		o := &output{division: &c.is, from: &reading{cfg: &catalog.Config{Architectures: []string{"Toy"}}}, model: &recognition{}}
		for _, form := range []string{"fused", "separate"} {
			if got := o.isLike(catalog.Tried{Class: "Toy", Experts: form, Modules: []string{"l.#"}}); got != c.want[form] {
				t.Errorf("%s fits experts that are %q: %v", form, o.experts(), got)
			}
		}
	}
}

// TestBasePrefix checks that names get or lose the prefix of the base model as in transformers:
// they get it if the stated class has it, and lose it if the class is the base model. Heads, and
// names that fit a given dict, stay.
func TestBasePrefix(t *testing.T) {
	made := planEntry(t, catalog.Find("llama-untied-escaped"), true)
	full := loadable(t, made.src, made.plan)
	strip := func(class, from, to string) Source {
		src := full
		src.Config = fmt.Appendf(nil, `{"model_type": "llama", "architectures": [%q], "tie_word_embeddings": true, "num_hidden_layers": 3}`, class)
		h := *full.Weights[0].Header
		h.Tensors = slices.Clone(h.Tensors)
		for i, tensor := range h.Tensors {
			if rest, ok := strings.CutPrefix(tensor.Name, from); ok && !strings.HasPrefix(tensor.Name, "lm_head") {
				h.Tensors[i].Name = to + rest
			}
		}
		src.Weights = []WeightFile{{File: full.Weights[0].File, Header: &h}}
		return src
	}
	given := catalog.PatternDict{{Regex: `layers\.\d+`, Attrs: []string{"mlp.up_proj"}}}
	for name, c := range map[string]struct {
		src   Source
		opt   Options
		unit  string
		loads Verdict
	}{
		"as it is":      {strip("LlamaForCausalLM", "", ""), Options{}, "model.layers.0", Loads},
		"without":       {strip("LlamaForCausalLM", "model.", ""), Options{}, "model.layers.0", Loads},
		"base":          {strip("LlamaModel", "model.", ""), Options{}, "layers.0", Untested},
		"base with":     {strip("LlamaModel", "", ""), Options{}, "layers.0", Untested},
		"given without": {strip("LlamaForCausalLM", "model.", ""), Options{PatternDict: given}, "layers.0", Refuses},
		"other names":   {strip("LlamaForCausalLM", "model.", "transformer."), Options{}, "transformer.layers.0", Refuses},
	} {
		p := mustPlan(t, c.src, c.opt)
		isUnit := func(u Unit) bool { return u.Path == c.unit }
		if !slices.ContainsFunc(p.Units, isUnit) || p.Readers[0].Loads != c.loads {
			t.Errorf("%s: first unit %s, %+v", name, p.Units[0].Path, p.Readers[0])
		}
	}
}
