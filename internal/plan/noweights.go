package plan

import (
	"errors"
	"path"
	"slices"
	"strings"
)

// errEmptyIndex is an index without a weight_map.
var errEmptyIndex = errors.New("it lists no tensors")

// Hints for sources without safetensors weights.
const (
	pickleHint = "re-save the model as safetensors, for example with save_pretrained(safe_serialization=True), " +
		"or look for a safetensors branch of the repo"
	ggufHint    = "start from the original BF16 safetensors repo; a GGUF file is already its own format"
	adapterHint = "merge the adapter into its base model first"
)

// refuseNoWeights says which other kind of weights the source holds.
func (s *Survey) refuseNoWeights() error {
	switch {
	case s.count(".gguf") > 0:
		return refuse(ReasonNoWeights, ggufHint, "the source holds GGUF weights, not BF16 safetensors")
	case s.has(path.Join(s.Dir, "adapter_model.safetensors")) != "":
		return refuse(ReasonNoWeights, adapterHint, "the source is a LoRA adapter, not a model")
	case s.count(".safetensors") > 0 && s.Layout != ComfyUI:
		return refuse(ReasonWeights, "name the file with the weight file option, or choose another layout",
			"the source has neither %s.safetensors nor its index", path.Join(s.Dir, s.Layout.stem()))
	case s.count(".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle") > 0:
		return refuse(ReasonNoWeights, pickleHint, "the source holds pickled weights only, which are never opened")
	default:
		return refuse(ReasonNoWeights, "", "the source holds no safetensors weights")
	}
}

// count counts files in the weights' folder with one of the extensions.
func (s *Survey) count(exts ...string) int {
	n := 0
	for _, f := range s.files {
		if slices.Contains(exts, strings.ToLower(path.Ext(f.Path))) && strings.HasPrefix(f.Path, s.Dir) {
			n++
		}
	}
	return n
}
