package metadata

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"github.com/df11-convert/df11-convert/internal/plan"
)

// CardInput is everything that the model card states. All text in it is escaped where it lands.
type CardInput struct {
	Name      string       // of the DF11 model: "Llama-3.1-8B-DF11"
	Repo      string       // "org/Llama-3.1-8B-DF11"; "" when it is not published
	BaseModel string       // "org/name"; "" when a local source has no stated base model
	Commit    string       // of the base model; "" for a local source
	Source    *FrontMatter // of the source's README.md; nil if it has none

	// What the Hub says of the source, for keys on which its README.md is silent.
	PipelineTag, LibraryName string

	Layout      plan.Layout
	Component   string // folder of the converted part of a diffusers pipeline; "" at the root
	Loader      plan.Loader
	Readers     []plan.Reader
	Provenance  string // of the pattern dict, as in plan.Plan
	Derived     bool
	WeightFile  string   // the one file of a single-file layout
	Like        string   // catalogue entry without which verify does not find the plan again; "" for none
	GivenDict   bool     // nothing in the repo states the pattern dict, which was given
	Image       string   // picture of sizes and exponents beside the card; "" if there is none
	NoticeFiles []string // license files that were copied

	SourceBytes    int64 // of the weights, before; F32 that is exact BF16 counts as such
	F32Bytes       int64 // of the weights as the source stores them; 0 if none is F32
	NExactF32      int64 // weights that the source holds as F32
	OutputBytes    int64 // of the weights, after
	NUnits         int64 // stored as DF11
	NWeights       int64 // in the units stored as DF11
	KeptBF16       []KeptUnit
	TiedEmbeddings bool
	Differences    []string
	TiesBroken     []string // units whose code depends on a rule of §5.1

	Verification []Verification
	ToolVersion  string
}

// KeptUnit is a unit that DF11 cannot hold.
type KeptUnit struct {
	Path     string
	NWeights int64
	Reason   string // code or words
}

//go:embed card.md.tmpl
var cardText string

// Card returns the README.md of a DF11 repo: front matter as docs of the Hub ask for it, then a page for people.
func Card(in CardInput) ([]byte, error) {
	head, err := in.frontMatter()
	if err != nil {
		return nil, fmt.Errorf("write model card: %w", err)
	}
	t, err := template.New("card").Funcs(cardFuncs).Parse(cardText)
	if err != nil {
		return nil, fmt.Errorf("write model card: %w", err)
	}
	var b bytes.Buffer
	b.Write(head)
	b.WriteByte('\n')
	if err := t.Execute(&b, in); err != nil {
		return nil, fmt.Errorf("write model card: %w", err)
	}
	return b.Bytes(), nil
}

// frontMatter writes the block from the source's: keys that are no longer true are left out, and our own are added.
func (in CardInput) frontMatter() ([]byte, error) {
	w, src := &yamlWriter{}, in.Source
	w.text("base_model", in.BaseModel)
	if in.BaseModel != "" {
		w.text("base_model_relation", "quantized") // the Hub's word for "the same model in another format"
	}
	w.text("license", in.Source.String("license"))
	w.copyStrings(src, "license_name")
	w.copyStrings(src, "license_link")
	w.text("library_name", in.library())
	w.text("pipeline_tag", cmp.Or(src.String("pipeline_tag"), in.PipelineTag))
	w.copyStrings(src, "language")
	w.copyStrings(src, "datasets")
	w.list("tags", cardTags(src.Strings("tags")))
	for _, key := range src.keys() {
		if strings.HasPrefix(key, "extra_gated_") {
			w.add(key, src.get(key))
		}
	}
	return w.bytes()
}

// library falls back to the library that the layout implies.
func (in CardInput) library() string {
	implied := map[plan.Layout]string{
		plan.Transformers: "transformers", plan.TransformersSingle: "transformers",
		plan.Diffusers: "diffusers", plan.DiffusersSingle: "diffusers",
		plan.ComfyUI: "diffusion-single-file",
	}
	return cmp.Or(in.Source.String("library_name"), in.LibraryName, implied[in.Layout])
}

// ownTags make a repo findable as DF11.
var ownTags = []string{"dfloat11", "df11", "lossless-compression"}

// staleTag matches tags of a source that would be wrong for a DF11 repo, or that the Hub derives by itself.
var staleTag = regexp.MustCompile(`(?i)^(gguf|ggml|awq|gptq|mlx|exl[23]|bnb|bitsandbytes|onnx|openvino|coreml|tensorrt.*|` +
	`fp8|fp16|bf16|bfloat16|int[48]|[2-8]-?bit|quantized|safetensors|pytorch|tf|jax|flax|rust|vllm|sglang|llamafile|llama\.cpp|` +
	`text-generation-inference|text-embeddings-inference|endpoints_compatible|autotrain_compatible|` +
	`(license|base_model|region|arxiv|dataset|doi|model-index|deploy):.*)$`)

// cardTags returns our tags, then the tags of the source that are still true, each once.
func cardTags(source []string) []string {
	tags := slices.Clone(ownTags)
	seen := map[string]bool{}
	for _, t := range tags {
		seen[t] = true
	}
	for _, t := range source {
		if low := strings.ToLower(t); t != "" && !seen[low] && !staleTag.MatchString(t) {
			seen[low] = true
			tags = append(tags, t)
		}
	}
	return tags
}

// LicenseName is the license in words: its own name if it has one, else the Hub's id.
func (in CardInput) LicenseName() string {
	return cmp.Or(in.Source.String("license_name"), in.Source.String("license"))
}
