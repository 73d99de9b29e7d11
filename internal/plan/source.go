package plan

import (
	"strings"

	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// Source is all that a plan is made from. Nothing in it is trusted.
type Source struct {
	ID     string // repo id, or the name of the local folder or file; part of the digest
	Commit string // pinned commit; empty for a local source
	// the one weight file, if the source's own path names it; Options.WeightFile wins
	WeightFile string
	Files      []File // every file of the source, in any order
	// the headers of the files that Survey.WeightFiles returned, in that order
	Weights    []WeightFile
	Index      []byte // the file Survey.Index; nil when that is empty
	Config     []byte // the file Survey.Config; nil when that is empty
	ModelIndex []byte // the file Survey.ModelIndex; nil when that is empty
	RootConfig []byte // the file Survey.RootConfig; nil when that is empty
}

// File is one file of the source, or one that is copied. Paths use forward slashes.
type File struct {
	Path string `json:"path"`
	Size int64  `json:"size"`
	// what pins the content: sha256 or blob id; empty if unknown
	ETag string `json:"etag,omitempty"`
}

// WeightFile is a safetensors file that is converted, with its header.
type WeightFile struct {
	File
	Header *safetensors.Header
}

// Options change what a plan decides. The zero value lets the source and the catalog decide.
type Options struct {
	PatternDict PatternDict // overrides the catalog
	// catalog id or published DF11 repo whose dict is reproduced; beside PatternDict, whose names
	// and ties apply
	Like   string
	Layout Layout // overrides the layout that the source suggests
	// folder of a diffusers pipeline to convert; "" = transformer, else unet
	Component string
	// the one weight file to convert, for repos that hold several single files
	WeightFile string
	ExactF32   bool // take F32 weights that turn out to be exact BF16
}

// convertible says whether weights of a type can become units.
func (o *Options) convertible(d safetensors.DType) bool {
	return d == safetensors.BF16 || d == safetensors.F32 && o.ExactF32
}

// compressible says whether a tensor can become a weight of a unit.
func (o *Options) compressible(t Tensor) bool { return len(t.Shape) == 2 && o.convertible(t.DType) }

// Layout is the way a model is laid out in its folder, on both sides of the conversion.
type Layout string

// Layouts. The single forms put every unit and the remainder into one file.
const (
	Transformers       Layout = "transformers"        // units, model.safetensors, full config.json
	TransformersSingle Layout = "transformers-single" // model.safetensors, full config.json
	// units, diffusion_pytorch_model.safetensors, config.json
	Diffusers Layout = "diffusers"
	// diffusion_pytorch_model.safetensors, config.json
	DiffusersSingle Layout = "diffusers-single"
	// one file with ComfyUI's names, and a config.json for other readers than ComfyUI
	ComfyUI Layout = "comfyui-single"
)

// Single says whether the layout puts everything into one file.
func (l Layout) Single() bool { return l != Transformers && l != Diffusers }

// family returns the layout of the source files: a source of one family cannot be written in
// another.
func (l Layout) family() Layout {
	switch l {
	case TransformersSingle:
		return Transformers
	case DiffusersSingle:
		return Diffusers
	default:
		return l
	}
}

// stem is the name of the remainder file without its extension (docs/format.md §10).
func (l Layout) stem() string {
	if l.family() == Diffusers {
		return "diffusion_pytorch_model"
	}
	return "model"
}

// LayoutNames are the values that ParseLayout takes, one for each layout.
func LayoutNames() []string {
	return []string{string(Transformers), string(TransformersSingle), string(Diffusers),
		string(DiffusersSingle), "single"}
}

// ParseLayout reads the value of a layout option; "single" stands for ComfyUI's single file.
func ParseLayout(s string) (Layout, error) {
	switch l := Layout(s); l {
	case "", Transformers, TransformersSingle, Diffusers, DiffusersSingle, ComfyUI:
		return l, nil
	case "single", "comfyui":
		return ComfyUI, nil
	default:
		return "", refuse("choose one of: "+strings.Join(LayoutNames(), ", "), "unknown layout %q",
			s)
	}
}
