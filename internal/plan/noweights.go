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

// pickleExts are the extensions of files that Python unpickles, which can run code.
var pickleExts = []string{".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle"}

// CheckFile refuses a file as a source that cannot be one, by its name. Options that name another file do not go with it.
func CheckFile(name string, opt Options) error {
	ext := strings.ToLower(path.Ext(name))
	switch {
	case opt.WeightFile != "":
		return refuse(ReasonLayout, "name either the folder with --file, or the file alone",
			"--file %s is given, but the source is the file %s", opt.WeightFile, name)
	case ext == ".safetensors":
		return nil
	case ext == ".gguf":
		return refuse(ReasonNoWeights, ggufHint, "%s holds GGUF weights, not BF16 safetensors", name)
	case slices.Contains(pickleExts, ext):
		return refuse(ReasonNoWeights, pickleHint, "%s holds pickled weights, which are never opened", name)
	case strings.HasSuffix(name, ".safetensors.index.json"):
		return refuse(ReasonNoWeights, "name its folder", "%s is the index of a model, not the model", name)
	default:
		return refuse(ReasonNoWeights, "", "%s is neither a folder nor a .safetensors file", name)
	}
}

// refuseNoWeights says which other kind of weights the source holds.
func (s *Survey) refuseNoWeights() error {
	switch {
	case s.count(".gguf") > 0:
		return refuse(ReasonNoWeights, ggufHint, "the source holds GGUF weights, not BF16 safetensors")
	case s.isAdapter():
		return refuse(ReasonNoWeights, adapterHint, "the source is a LoRA adapter, not a model")
	case s.count(".safetensors") > 0 && s.Layout != ComfyUI:
		return refuse(ReasonWeights, "name the file with --file, or choose another --layout",
			"the source has neither %s.safetensors nor its index", path.Join(s.Dir, s.Layout.stem()))
	case s.count(pickleExts...) > 0:
		return refuse(ReasonNoWeights, pickleHint, "the source holds pickled weights only, which are never opened")
	default:
		return refuse(ReasonNoWeights, "", "the source holds no safetensors weights")
	}
}

// isAdapter says whether the weights' folder holds an adapter under the usual names of its files.
func (s *Survey) isAdapter() bool {
	for _, name := range []string{"adapter_config.json", "adapter_model.safetensors", "adapter_model.bin", "pytorch_lora_weights.safetensors"} {
		if s.has(path.Join(s.Dir, name)) != "" {
			return true
		}
	}
	return false
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
