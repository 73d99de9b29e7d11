package metadata_test

import (
	"bytes"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/testing/alloc"
)

const llamaReadme = `---
# who may use it
language:
- en
- no
license: llama3.1
license_name: 1.0
license_link: LICENSE
pipeline_tag: text-generation
tags: [facebook, GGUF, df11, 4-bit, "yes", "base_model:x/y", Conversational, 'conversational']
datasets: &d [a/b]
base_model: someone/else
model-index: [{name: x}]
widget:
- text: hello
---
# Llama
`

// frontMatter parses a block with these lines.
func frontMatter(t testing.TB, lines string) metadata.FrontMatter {
	t.Helper()
	return parseReadme(t, "---\n"+lines+"\n---\n")
}

func parseReadme(t testing.TB, readme string) metadata.FrontMatter {
	t.Helper()
	f, err := metadata.ParseFrontMatter([]byte(readme))
	must(t, err)
	return f
}

// unit returns a planned module with one weight.
func unit(path string, shape ...int64) plan.Unit {
	t := plan.Tensor{Shape: shape}
	t.Length = 2 * t.NElems()
	return plan.Unit{Path: path, Attrs: []plan.Tensor{t}}
}

// manifest returns a manifest of nUnits DF11 units with nWeights weights, and nTensors compared
// tensors.
func manifest(nUnits, nTensors, nWeights int64) *metadata.Manifest {
	m := &metadata.Manifest{Units: make([]metadata.Unit, nUnits), Verification: []metadata.Verification{
		{Method: "cpu", Decoder: "package verify", NUnits: nUnits, NTensors: nTensors, NWeights: nWeights},
	}}
	for i := range m.Units {
		m.Units[i] = metadata.Unit{Path: fmt.Sprintf("unit.%d", i), Status: metadata.DF11}
	}
	m.Units[0].NWeights = nWeights
	return m
}

func llamaCard(t testing.TB) metadata.CardInput {
	m := manifest(34, 291, 8030000000)
	m.Tool.Version = "v1.0.0"
	m.Units[0].Path = "lm_head"
	m.Units = append(m.Units, metadata.Unit{Path: "model.layers.7", Status: metadata.BF16, NWeights: 218103808, Reason: "shared_memory"})
	m.Verification = append(m.Verification,
		metadata.Verification{Method: "gpu", Decoder: "df11-convert, PTX 7.0", Device: "NVIDIA H200", NUnits: 34, NTensors: 226, NWeights: 8030000000})
	return metadata.CardInput{
		Name: "Llama-3.1-8B-DF11", Repo: "me/Llama-3.1-8B-DF11",
		CardSource: metadata.CardSource{
			BaseModel: "meta-llama/Llama-3.1-8B", Commit: strings.Repeat("ab", 20),
			Source: parseReadme(t, llamaReadme), PipelineTag: "other",
		},
		Plan: &plan.Plan{
			Layout: catalog.Transformers, Loader: catalog.Loader{Via: "AutoModelForCausalLM", Transformers: ">=4.43,<5"},
			Units:      []plan.Unit{unit("lm_head", 128256, 4096), unit("model.layers.0", 53248, 4096), unit("model.layers.7", 300000, 4096)},
			Rest:       plan.Rest{Remainder: []plan.Tensor{{Name: "model.norm.weight", Length: 8192}}},
			Provenance: "published:DFloat11/Llama-3.1-8B-Instruct-DF11",
			Carried:    plan.Carried{Copied: []plan.File{{Path: "LICENSE"}, {Path: "vocab.json"}, {Path: "USE_POLICY.md"}}},
			Notes: plan.Notes{
				Readers:     []plan.Reader{{Name: "df11", Version: "1", Loads: plan.Loads}, {Name: "dfloat11", Version: "0.5.0", Loads: plan.Loads}, {Name: "node", Loads: plan.Refuses, Why: "regex has `+?` | more"}},
				Differences: []string{"tensor model.rotary_emb.inv_freq is kept; the model class drops it"},
			},
		},
		CardSizes: metadata.CardSizes{SourceBytes: 16060522240, OutputBytes: 10894000000},
		Manifest:  m,
		Config:    []byte(`{"architectures": ["LlamaForCausalLM"], "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "hidden_size": 4096, "max_position_embeddings": 131072}`),
	}
}

func localCard(t *testing.T) metadata.CardInput {
	t.Helper()
	return metadata.CardInput{
		Name:       "my model-DF11",
		CardSource: metadata.CardSource{Source: frontMatter(t, "license: \"no\"\npipeline_tag: image-text-to-text")},
		Plan: &plan.Plan{
			Layout: catalog.Transformers, Loader: catalog.Loader{Via: "bfloat16_model=", Class: "Gemma3ForConditionalGeneration"},
			Provenance: "derived", Changes: plan.Changes{TiedEmbeddings: true},
		},
		CardSizes: metadata.CardSizes{SourceBytes: 255416, OutputBytes: 183258},
		Manifest:  manifest(3, 5, 1234),
		Config:    []byte(`{"architectures": ["Gemma3ForConditionalGeneration"]}`),
	}
}

func diffusersCard(t *testing.T) metadata.CardInput {
	t.Helper()
	m := manifest(57, 1, 11900000000)
	m.Verification[0].NWeights = 1
	return metadata.CardInput{
		Name: "FLUX.1-dev-DF11", Repo: "me/FLUX.1-dev-DF11", Component: "transformer", Pipeline: "FluxPipeline",
		CardSource: metadata.CardSource{
			BaseModel: "black-forest-labs/FLUX.1-dev", Source: frontMatter(t, "license: other"), PipelineTag: "text-to-image",
		},
		Plan: &plan.Plan{
			Layout: catalog.Diffusers, Loader: catalog.Loader{Via: "bfloat16_model=", Class: "FluxTransformer2DModel (diffusers)"},
			Provenance: "given",
		},
		CardSizes: metadata.CardSizes{SourceBytes: 23800000000, OutputBytes: 16300000000},
		Manifest:  m,
	}
}

func TestCardGolden(t *testing.T) {
	comfy := diffusersCard(t)
	comfy.Component, comfy.Plan.Layout, comfy.Plan.OutputFiles = "", catalog.ComfyUI, []plan.OutputFile{{Path: "flux1-dev-DF11.safetensors"}}
	comfy.Plan.Readers = []plan.Reader{{Name: plan.ComfyReader, Version: "6073936", Loads: plan.Loads}, {Name: "dfloat11", Loads: plan.Refuses}}
	comfy.Plan.Provenance = "extended:6073936ac7d5473419a564eecfa87f38ac421987"
	comfy.Plan.Loader = catalog.Loader{Caveat: "the node's author says that something is off"}
	part := diffusersCard(t) // a transformer without its pipeline
	part.Component, part.Pipeline = "", ""
	for name, in := range map[string]metadata.CardInput{
		"card_llama.md": llamaCard(t), "card_local.md": localCard(t), "card_diffusers.md": diffusersCard(t), "card_comfyui.md": comfy,
		"card_part.md": part,
	} {
		got, err := metadata.Card(in)
		must(t, err)
		golden(t, name, got)
		if bytes.Contains(got, []byte("\n\n\n")) || bytes.Contains(got, []byte("<no value>")) {
			t.Errorf("%s: loose ends", name)
		}
	}
}

// TestResultsOfF32 checks that the card claims the original's evaluation results for weights stored
// in F32 only if the original runs in BF16 all the same, because its config says so.
func TestResultsOfF32(t *testing.T) {
	for config, same := range map[string]bool{
		"{}": false, `{"dtype": "float32"}`: false, `{"torch_dtype": "float16"}`: false, `{"dtype": "bfloat16"}`: true,
		`{"text_config": {"torch_dtype": "bfloat16"}}`: true,
	} {
		in := localCard(t)
		in.F32Bytes, in.Config = 4*1234, []byte(config)
		card, err := metadata.Card(in)
		must(t, err)
		if bytes.Contains(card, []byte("evaluation results of the original hold")) != same ||
			bytes.Contains(card, []byte("Nothing is rounded")) != same ||
			bytes.Contains(card, []byte("evaluation results differ")) == same {
			t.Errorf("%s:\n%s", config, card)
		}
	}
}

// TestNameless checks that the card of a model whose class nothing says shows no code that builds it.
func TestNameless(t *testing.T) {
	for config, nameless := range map[string]bool{"": true, "{}": true, `{"architectures": ["X"]}`: false} {
		in := localCard(t)
		in.Config = []byte(config)
		card, err := metadata.Card(in)
		must(t, err)
		if bytes.Contains(card, []byte("df11.fill(")) != nameless || bytes.Contains(card, []byte("df11.load(")) == nameless ||
			bytes.Contains(card, []byte("DFloat11Model.from_pretrained")) == nameless {
			t.Errorf("%q:\n%s", config, card)
		}
	}
}

// TestEveryOriginIsSaid checks that cards say in words where the dict of each entry of the catalog
// comes from.
func TestEveryOriginIsSaid(t *testing.T) {
	in := llamaCard(t)
	for _, e := range catalog.All() {
		in.Plan.Provenance = e.Provenance
		if said := in.Origin(); strings.Contains(said, "`") || strings.Contains(said, "extended:") {
			t.Errorf("%s: the list of compressed modules %s", e.ID, said)
		}
	}
}

// TestCardNamesTheBranch checks that the code and the commands of a card name the branch wherever they
// name the repo: without it they would read main, which may hold another model.
func TestCardNamesTheBranch(t *testing.T) {
	for name, in := range map[string]metadata.CardInput{"transformers": llamaCard(t), "diffusers": diffusersCard(t)} {
		in.Repo, in.Branch = "org/on-branch", "dev"
		got, err := metadata.Card(in)
		must(t, err)
		n := 0
		for _, line := range strings.Split(string(got), "\n") {
			switch {
			case !strings.Contains(line, in.Repo):
				continue
			case strings.Contains(line, `"org/on-branch", revision="dev"`), strings.Contains(line, "org/on-branch@dev"),
				strings.Contains(line, "org/on-branch --revision dev"):
			default:
				t.Errorf("%s: a line of the card names main: %s", name, line)
			}
			n++
		}
		if n < 4 { // df11, dfloat11, verify, decode
			t.Errorf("%s: only %d lines name the repo", name, n)
		}
	}
}

// TestLinksOfAnotherHub checks that a card doesn't link to the public Hub for an original that is on
// another one, and still names it wherever it did.
func TestLinksOfAnotherHub(t *testing.T) {
	const base = "meta-llama/Llama-3.1-8B"
	for _, revision := range []string{"", "v1"} {
		in := llamaCard(t)
		in.Gated, in.Revision = true, revision
		public, err := metadata.Card(in)
		must(t, err)
		in.Elsewhere = true
		own, err := metadata.Card(in)
		must(t, err)
		linked := regexp.MustCompile(`\[` + base + `\]\(https://huggingface\.co/` + base + `[^)]*\)`)
		if n := len(linked.FindAll(public, -1)); n != 5 {
			t.Errorf("%d links to the original", n)
		}
		if want := linked.ReplaceAll(public, []byte("`"+base+"`")); !bytes.Equal(own, want) {
			t.Errorf("the card of another Hub:\n%s", own)
		}
	}
}

func TestCardEscapesHostileText(t *testing.T) {
	in := llamaCard(t)
	in.Name = "a'; rm -rf / #`x`\n# heading <script>"
	in.Repo = "x/y $(boom)"
	in.Manifest.Units[34].Path = "a`|\n| b"
	in.BaseModel = "[x](javascript:1)/y: z"
	got, err := metadata.Card(in)
	must(t, err)
	prose := ""
	for i, part := range strings.Split(string(got), "\n```") {
		if i%2 == 0 {
			prose += part
		}
	}
	if strings.Contains(prose, "<script>") {
		t.Error("HTML outside a code block")
	}
	if want := `--local-dir $'a\'; rm -rf / #` + "`x`" + `\x0a# heading <script>'`; !strings.Contains(string(got), want) {
		t.Errorf("card lacks %s", want)
	}
	for _, bad := range []string{"\n# heading", "](javascript:1)]", " $(boom)\n", "\n| b"} {
		if strings.Contains(string(got), bad) {
			t.Errorf("card contains %q:\n%s", bad, got)
		}
	}
}

// TestNamesAreNeitherMarkupNorLinks checks that Markdown reads an unknown reason as plain text,
// whatever backslashes come before a mark.
func TestNamesAreNeitherMarkupNorLinks(t *testing.T) {
	for _, mark := range []string{"|", "`", "[", "*", "_", "~", "<b>", "https://x", "www.x", `\`, "a"} {
		for n := range 4 {
			text := "a" + strings.Repeat(`\`, n) + mark + "z"
			got, read := metadata.ReasonText(text), ""
			for rest := got; rest != ""; rest = rest[1:] {
				if rest[0] == '\\' {
					rest = rest[1:]
				} else if strings.ContainsAny(rest[:1], "|`[*_~<") {
					t.Errorf("%q: there is a mark in %q", text, got)
				}
				read += rest[:1]
			}
			if read = strings.ReplaceAll(read, "&lt;", "<"); read != text {
				t.Errorf("%q reads %q", text, read)
			}
			if strings.Contains(got, "://") || strings.Contains(got, "www.") {
				t.Errorf("%q becomes a link", got)
			}
		}
	}
}

// TestNamesStayInTheirCell checks that a pipe in a code span has an odd number of backslashes
// before it, whether or not a reader takes them in pairs.
func TestNamesStayInTheirCell(t *testing.T) {
	for n := range 4 {
		in := llamaCard(t)
		in.Manifest.Units[34].Path = strings.Repeat(`\`, n) + "|"
		got, err := metadata.Card(in)
		must(t, err)
		_, row, _ := strings.Cut(string(got), "\n| `\\")
		span, _, _ := strings.Cut(row, "|")
		if len(span)%2 != 0 || strings.Trim(span, `\`) != "" {
			t.Errorf("%d backslashes: the cell begins with `\\%s|", n, span)
		}
	}
}

func TestParseFrontMatter(t *testing.T) {
	for _, readme := range []string{"", "# title\n---\na: 1\n---\n", "---\n---\n", "--- x\na: 1\n---\n", "---\nnever closed\n"} {
		if f, err := metadata.ParseFrontMatter([]byte(readme)); !reflect.DeepEqual(f, metadata.FrontMatter{}) || err != nil {
			t.Errorf("%q: %v, %v", readme, f, err)
		}
	}
	got := parseReadme(t, "\ufeff---\r\nlicense: mit\r\ntags: [a, 1, {b: c}, null, no, '']\r\nlanguage: null\r\nquantized_by: [a]\r\n---\r\ntext")
	want := metadata.FrontMatter{QuantizedBy: []string{"a"}, License: []string{"mit"}, Tags: []string{"a", "1", "no"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	for _, block := range []string{"- a\n- b\n", "a: [\n", "license: mit\nlicense: apache\n"} {
		if f, err := metadata.ParseFrontMatter([]byte("---\n" + block + "---\n")); err == nil {
			t.Errorf("%.40q: accepted as %v", block, f)
		}
	}
}

// FuzzParseFrontMatter checks that a card made from any accepted block has an accepted block with
// the same values.
func FuzzParseFrontMatter(f *testing.F) {
	f.Add([]byte(llamaReadme))
	f.Add([]byte("---\nlicense: [mit, apache-2.0]\n---\n"))
	f.Add([]byte("---\r\nlicense: !!float 1\nx: {? [a] : b}\n---\n"))
	f.Fuzz(func(t *testing.T, readme []byte) {
		var source metadata.FrontMatter
		var err error
		alloc.Within(t, 64<<20, func() { source, err = metadata.ParseFrontMatter(readme) })
		if err != nil {
			return
		}
		card, err := metadata.Card(metadata.CardInput{Name: "x", Plan: &plan.Plan{}, Manifest: &metadata.Manifest{}, CardSource: metadata.CardSource{Source: source}})
		if err != nil {
			t.Fatalf("%q: %v", readme, err)
		}
		again, err := metadata.ParseFrontMatter(card)
		source.Tags, again.Tags = nil, nil
		source.QuantizedBy, source.Relation, again.Relation = nil, nil, nil
		source.LibraryName, again.LibraryName = nil, nil // ours
		if err != nil || !reflect.DeepEqual(source, again) {
			t.Fatalf("%q became %q: %+v, %v", readme, card, again, err)
		}
	})
}

// TestCardSays checks texts that only some cards have: no one has loaded such a model, the original
// is gated, it has several licenses, it can't be restored, or its pipeline makes a picture.
func TestCardSays(t *testing.T) {
	read := func(v plan.Verdict) func(*metadata.CardInput) {
		return func(in *metadata.CardInput) {
			in.Plan.Readers = []plan.Reader{{Name: "dfloat11", Loads: v}, {Name: "other", Loads: plan.Refuses}}
		}
	}
	pipe := func(pipeline, class string) func(*metadata.CardInput) {
		return func(in *metadata.CardInput) {
			in.Plan.Layout, in.Pipeline, in.Plan.Loader.Class = catalog.Diffusers, pipeline, class
		}
	}
	const picture = `pipe("a cat").images[0].save("cat.png")`
	const untested, gated, decode = "\n\n> **Untested.**", " is gated", "df11-convert decode"
	for name, c := range map[string]struct {
		change     func(*metadata.CardInput)
		has, lacks string
	}{
		"loads nowhere":    {read(plan.Refuses), "**Does not load in dfloat11", "DFloat11Model"},
		"loaded by no one": {read(plan.Untested), untested, gated},
		"one untested": {func(in *metadata.CardInput) {
			in.Plan.Readers = []plan.Reader{{Name: "dfloat11", Loads: plan.Untested, Why: "no one tried"}, {Name: "df11", Loads: plan.Loads}}
		}, "dfloat11</summary>\n\n**Untested**: no one tried.\n\n```sh", "Other loaders"},
		"ours untested": {func(in *metadata.CardInput) {
			in.Plan.Readers = []plan.Reader{{Name: "dfloat11", Loads: plan.Loads}, {Name: "df11", Loads: plan.Untested, Why: "no one tried"}}
		}, "```\n\n**Untested**: no one tried. On an NVIDIA GPU", "Other loaders"},
		"gated":          {func(in *metadata.CardInput) { in.Gated = true }, gated, untested},
		"all compressed": {func(in *metadata.CardInput) { in.Plan.Loader.Via = "AutoModelForCausalLM" }, "type(model).device = ", untested},
		"transformers 5": {func(in *metadata.CardInput) { in.Plan.Loader = catalog.Loader{Transformers: ">=5"} }, "initialization", "<5"},
		"a video":        {pipe("WanPipeline", "WanTransformer3DModel"), "pipe.enable_model_cpu_offload()", picture},
		"an edited one":  {pipe("QwenImageEditPipeline", "QwenImageTransformer2DModel"), "pipe.enable_model_cpu_offload()", picture},
		"from a release": {func(in *metadata.CardInput) { in.Manifest.Tool.Version = "1.2.3" }, "uvx " + decode, "\n" + decode},
		"from a build":   {func(in *metadata.CardInput) { in.Manifest.Tool.Version = "1.2.4-0.2026" }, decode, "uvx"},
		"code of its own": {func(in *metadata.CardInput) {
			in.Plan.Loader = catalog.Loader{Via: "bfloat16_model=", Class: "AutoModel", RemoteCode: true}
		}, "AutoModel.from_config(config, trust_remote_code=True)", untested},
		"code of another repo": {func(in *metadata.CardInput) {
			in.Plan.Loader, in.Plan.Code.Repos = catalog.Loader{Via: "bfloat16_model=", Class: "AutoModel", RemoteCode: true}, []string{"them/theirs"}
		}, "# The class is code of \"them/theirs\", not of this repo", "in this folder"},
		"code of others, in df11": {func(in *metadata.CardInput) {
			in.Plan.Loader, in.Plan.Code.Repos = catalog.Loader{Via: "bfloat16_model=", Class: "AutoModel", RemoteCode: true}, []string{"a/b", "c/d"}
		}, `, trust_remote_code=["a/b", "c/d"])`, "in this folder"},
		"code that is lacking": {func(in *metadata.CardInput) {
			in.Plan.Loader, in.Plan.Code.Missing = catalog.Loader{Via: "bfloat16_model=", Class: "AutoModel", RemoteCode: true}, []string{"m.py"}
		}, `this repo lacks "m.py"`, "in this folder"},
		"of another model":  {func(in *metadata.CardInput) { in.Plan.Dropped = []plan.Tensor{{Name: "vae.x"}} }, "## License", decode},
		"licenses in front": {func(in *metadata.CardInput) { in.Source = frontMatter(t, "license: [mit, apache-2.0]") }, "license:\n  - mit\n  - apache-2.0\n", gated},
		"licenses in words": {func(in *metadata.CardInput) { in.Source = frontMatter(t, "license: [mit, apache-2.0]") }, "(`mit, apache-2.0`)", gated},
	} {
		in := localCard(t)
		c.change(&in)
		card, err := metadata.Card(in)
		must(t, err)
		if !bytes.Contains(card, []byte(c.has)) || bytes.Contains(card, []byte(c.lacks)) {
			t.Errorf("%s: want %q and no %q:\n%s", name, c.has, c.lacks, card)
		}
		if warning := bytes.Index(card, []byte(untested)); warning > bytes.Index(card, []byte("## Use it")) {
			t.Errorf("%s: the warning comes late", name)
		}
	}
}

// TestCardSaysWhoseLicense checks that a card claims a license of the source only if the source names
// one and the user named no other.
func TestCardSaysWhoseLicense(t *testing.T) {
	type ways struct{ source, named string }
	for of, want := range map[ways]string{
		{"", ""}:                             "in another format. The source names no license, so its authors' terms apply",
		{"mit", ""}:                          "in another format, so its license (`mit`) applies unchanged.",
		{"", "mit"}:                          "in another format. Whoever converted them named the license `mit`.",
		{"mit", "mit"}:                       "in another format. Whoever converted them named the license `mit`.",
		{"apache-2.0", "mit"}:                "named the license `mit`; the source's card names `apache-2.0`.",
		{"other\nlicense_name: Ours", "mit"}: "named the license `mit`; the source's card names `Ours`.",
	} {
		in := metadata.CardInput{Name: "x", Plan: &plan.Plan{}, Manifest: &metadata.Manifest{}}
		if of.source != "" {
			in.Source = frontMatter(t, "license: "+of.source)
		}
		if of.named != "" {
			in.Licensed, in.Replaced = true, in.Source.LicenseText()
			in.Source.SetLicense(of.named)
		}
		card, err := metadata.Card(in)
		if err != nil || !strings.Contains(string(card), want) {
			t.Errorf("%q: no %q (%v)", of, want, err)
		}
		if of.named != "" && strings.Contains(string(card), "applies unchanged") {
			t.Errorf("%q: it speaks for the source", of)
		}
	}
}

// TestLeftOut checks that each thing of a source's card that ours lacks is named, and that a card
// that nobody can read isn't taken for an empty one.
func TestLeftOut(t *testing.T) {
	const head = "---\nlicense: mit\ntags: [a]\nmodel-index: []\nwidget: []\nextra_gated_prompt: Be kind.\n---\n"
	gate := "the new card doesn't ask its readers what the source's does: extra_gated_prompt; add that, and the gate in the repo's settings, yourself"
	for readme, want := range map[string][]string{
		"":                                 nil,
		"---\nlicense: mit\n---\n\n":       nil,
		head + "\n# Mine\n":                {"the new card lacks its text, model-index, widget", gate},
		"# Mine\n":                         {"the new card lacks its text"},
		"---\nextra_gated_heading: x\n---": {strings.ReplaceAll(gate, "_prompt", "_heading")},
	} {
		if got := metadata.LeftOut([]byte(readme), false); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", readme, got, want)
		}
	}
	if got := metadata.LeftOut([]byte(head+"# Theirs\n"), true); !slices.Equal(got, []string{"the new card lacks model-index, widget", gate}) {
		t.Errorf("a card with a link: %q", got)
	}
	if _, err := metadata.ParseFrontMatter([]byte("\xff\xfe-\x00-\x00-\x00\n\x00")); err == nil {
		t.Error("UTF-16 was read")
	}
}
