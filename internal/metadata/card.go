package metadata

import (
	"bytes"
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"text/template"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/plan"
)

// CardInput is everything that the model card states. Its text may be hostile: Card escapes it.
type CardInput struct {
	Name string // of the DF11 model: "Llama-3.1-8B-DF11"
	Repo string // "org/Llama-3.1-8B-DF11"; "" if it isn't published
	// Branch is the branch of Repo that holds the model, "" for main. All code and commands of the
	// card name it, because they would read main otherwise.
	Branch string
	CardSource
	Plan      *plan.Plan
	Component string // folder of the converted part of a diffusers pipeline; "" at the root
	Pipeline  string // class of that pipeline; "" if unknown
	Image     string // picture of sizes and exponents next to the card; "" if there is none
	Config    []byte // the source's config.json, which says how much memory a token takes; may be nil
	CardSizes
	Manifest *Manifest // with the units and the checks
}

// CardSource is the model that was converted.
type CardSource struct {
	// BaseModel is the repo whose weights these are, "org/name"; "" for a local source that wasn't
	// compared with one. Commit is its commit.
	BaseModel, Commit string
	// Elsewhere says that BaseModel is on another Hub than the public one. The card names it and
	// links nowhere: the public Hub may have another model of that name, and pages of other Hubs
	// other paths.
	Elsewhere bool
	// Revision is what Commit was asked for by, if it isn't main's; OffMain, that main may have other
	// files.
	Revision string
	OffMain  bool
	// Equal counts the weight files of a local source, which all have the SHA-256 of those of
	// BaseModel. File is the path of a single weight file there, if the local one has another.
	Equal  int
	Unlike []string // the files without weights that a local source has and that aren't BaseModel's
	File   string
	// OtherLicense says that BaseModel's card says something else of the license.
	OtherLicense bool
	Gated        bool        // people must accept the original's terms on the Hub
	Source       FrontMatter // of the source's README.md

	// PipelineTag is what the Hub says about the source, if its README.md doesn't.
	PipelineTag string
	// Licensed says that the user named the license that Source has. Replaced is that of the source's
	// README.md then, or "".
	Licensed bool
	Replaced string
}

// CardSizes compares the weights before and after.
type CardSizes struct {
	SourceBytes int64 // before, counting exact F32 as BF16
	F32Bytes    int64 // as stored in the source; 0 if no weight is F32
	OutputBytes int64 // after
}

//go:embed card.md.tmpl
var cardText string

var card = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("card").Funcs(cardFuncs).Parse(cardText))
})

// Card returns the README.md of a DF11 repo: the front matter that the Hub's docs ask for, then a
// page for people.
func Card(in CardInput) ([]byte, error) {
	head, err := in.frontMatter()
	if err != nil {
		return nil, fmt.Errorf("write model card: %w", err)
	}
	b := bytes.NewBuffer(append(head, '\n'))
	if err := card().Execute(b, in); err != nil {
		return nil, fmt.Errorf("write model card: %w", err)
	}
	return b.Bytes(), nil
}

// frontMatter takes over what is true of the DF11 model too, and adds what's ours.
func (in CardInput) frontMatter() ([]byte, error) {
	out := in.Source
	switch {
	case in.BaseModel != "":
		out.BaseModel, out.Relation = texts{in.BaseModel}, texts{RelationQuantized}
	case len(out.BaseModel) > 0:
		// the Hub doesn't know the source, but its card says what it was made from
		out.Relation = out.Relation.or(relationFinetune)
	default:
		out.Relation = nil
	}
	owner, _, _ := strings.Cut(in.Repo, "/")
	out.QuantizedBy = texts(nil).or(owner)
	// The Hub makes the code on the model's page from it. Code for the source's library can't load
	// this repo, so it's never the source's (.ci/deep/73-hub-page.sh).
	out.LibraryName = texts{library}
	if in.Plan.Layout == catalog.ComfyUI {
		out.LibraryName = texts{singleFile}
	}
	out.PipelineTag = out.PipelineTag.or(in.PipelineTag)
	out.Tags = cardTags(out.Tags)
	return out.Block()
}

// Values of base_model_relation. The Hub calls the same model in another format quantized. It
// assumes finetune if a card names no relation.
const (
	RelationQuantized = "quantized"
	relationFinetune  = "finetune"
)

// Values of library_name: our reader, which packaging/huggingface registers on the Hub, and what the
// Hub calls files for programs like ComfyUI.
const (
	library    = plan.OwnReader
	singleFile = "diffusion-single-file"
)

// ownTags are the tags that the authors of DFloat11 give their repos, so that people find ours too.
var ownTags = []string{"dfloat11", "df11", "lossless compression", "70% size, 100% accuracy"}

// staleTag matches a source's tags that would be wrong for a DF11 repo, or that the Hub adds
// itself.
var staleTag = regexp.MustCompile(
	`(?i)^(gguf|ggml|awq|gptq|mlx|exl[23]|bnb|bitsandbytes|onnx|openvino|coreml|tensorrt.*|` +
		`transformers|diffusers|sentence-transformers|fp8|fp16|bf16|bfloat16|int[48]|[2-8]-?bit|quantized|safetensors|pytorch|tf|jax|flax|rust|vllm|sglang|llamafile|llama\.cpp|` +
		`text-generation-inference|text-embeddings-inference|endpoints_compatible|autotrain_compatible|` +
		`(license|base_model|region|arxiv|dataset|doi|model-index|deploy):.*)$`)

// cardTags returns our tags, then the source's tags that still hold, each once.
func cardTags(source []string) []string {
	var tags []string
	has := map[string]bool{"": true}
	for i, t := range slices.Concat(ownTags, source) {
		if key := strings.ToLower(t); !has[key] && (i < len(ownTags) || !staleTag.MatchString(t)) {
			has[key] = true
			tags = append(tags, t)
		}
	}
	return tags
}
