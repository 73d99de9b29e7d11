package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// Notes are what the user should know about a plan. Each step adds its own.
type Notes struct {
	// where the output differs from the official route, and why
	Differences []string `json:"differences,omitempty"`
	Warnings    []string `json:"warnings,omitempty"` // what may go wrong
	// the Warnings about what readers of the source open and the output lacks
	Lacks []string `json:"-"`
	// which other part of the pipeline stays BF16 although it has the same class, and how to
	// compress it
	Twin string `json:"-"`
	// whether the official loader and the ComfyUI node load the output
	Readers []Reader `json:"readers,omitempty"`
}

func (n *Notes) warn(format string, args ...any) {
	n.Warnings = append(n.Warnings, human.Message(format, args...))
}

// lack warns of files that the output lacks.
func (n *Notes) lack(format string, args ...any) {
	n.warn(format, args...)
	n.Lacks = append(n.Lacks, n.Warnings[len(n.Warnings)-1])
}

// differ notes a difference from the official route's output.
func (n *Notes) differ(format string, args ...any) {
	n.Differences = append(n.Differences, human.Message(format, args...))
}

// noteOutput notes what the user should know about a whole output. official is the verdict of the
// official loader.
func noteOutput(o *output, official Verdict, notes *Notes) {
	cfg := o.from.cfg
	if key := statedQuant(cfg); key != "" {
		notes.warn("%s says that the weights are quantized (%s), but none is: remove that member",
			o.from.survey.Config, key)
	}
	if foreign := o.model.names.foreign; foreign != "" {
		notes.warn("the tensor names aren't the module paths of %s, which the config states: that class "+
			"can't load the output", foreign)
	}
	if o.dict.split {
		notes.differ("layers are split into smaller modules, because a layer exceeds 2^31-1 weights")
	}
	nExtra := 0
	for _, t := range o.remainder {
		if cfg.IsExtraLayer(catalog.Parent(t.Name)) {
			nExtra++
		}
	}
	if nExtra > 0 {
		notes.differ("%s of layers that the model class doesn't build are kept; the official route "+
			"drops them", count(nExtra, "tensor"))
	}
	noteCasts(o.plain(), cfg.ModelDType(), notes)
	if o.model.provenance == derived && official != Loads {
		notes.warn("untested: the catalog doesn't know this model, and no one has loaded a model converted " +
			"this way yet; its list of compressed modules was derived from tensor names and shapes")
	}
}

// noteCasts notes plain tensors in another floating-point type than the model's.
func noteCasts(plain []Tensor, model safetensors.DType, notes *Notes) {
	byType := map[safetensors.DType]int{}
	for _, t := range plain {
		if t.DType != model && isPlainFloat(t.DType) {
			byType[t.DType]++
		}
	}
	article := "a"
	if strings.HasPrefix(string(model), "F") {
		article = "an"
	}
	for _, dtype := range slices.Sorted(maps.Keys(byType)) {
		notes.differ("%s in %s %s model: kept as stored; the official route and some loaders cast them",
			count(byType[dtype], fmt.Sprintf("plain %s tensor", dtype)), article, model)
	}
}
