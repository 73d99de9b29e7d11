package plan

import (
	"path"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/reader"
)

func isGGUF(name string) bool { return strings.EqualFold(path.Ext(name), ".gguf") }

// otherEnd returns the name under which a safetensors file with another end would be a source, or "".
// ComfyUI also opens .sft (folder_paths.py), and some systems ignore case.
func otherEnd(name string) string {
	end := path.Ext(name)
	if strings.EqualFold(end, ".sft") || strings.EqualFold(end, ".safetensors") && !reader.IsSafetensors(name) {
		return strings.TrimSuffix(path.Base(name), end) + ".safetensors"
	}
	return ""
}

// refuseFile refuses a file whose name shows that it can't be a source.
func refuseFile(name string) error {
	switch {
	case isGGUF(name):
		return refuse(hint.GGUF, "%s holds GGUF weights, not BF16 safetensors", name)
	case otherEnd(name) != "":
		return refuse(hint.OtherEnd.With("name", otherEnd(name)), "%s doesn't end in .safetensors", name)
	case reader.IsPickle(name):
		h := hint.CheckpointFile
		if strings.EqualFold(path.Ext(name), ".bin") { // as save_pretrained names it
			h = hint.Pickle
		}
		return refuse(h,
			"%s is a pickle checkpoint: it can run code, so df11-convert never loads it", name)
	default:
		return refuse(hint.NoWeights, "%s is neither a folder nor a .safetensors file", name)
	}
}

// refuseNoWeights says which kind of weights the source holds instead.
func (s *Survey) refuseNoWeights() error {
	isOther := func(p string) bool { return isGGUF(p) || reader.IsPickle(p) || otherEnd(p) != "" }
	other := s.find(isOther)
	switch {
	case s.has(names.Manifest) != "":
		return refuseDF11("the source is a DF11 model already (it has a df11-manifest.json)")
	case s.isAdapter():
		return refuse(hint.Adapter, "the source is a LoRA adapter, not a model")
	case s.has(path.Join(s.Dir, names.Remainder+".safetensors")) != "":
		return refuseDF11("the source holds a remainder.safetensors, as DF11 models do, and no weights of an original")
	case s.find(reader.IsSafetensors) != "":
		name := path.Join(s.Dir, s.Layout.Stem()) + ".safetensors"
		return refuse(hint.UnusualName.With("name", name), "the source has neither %s nor its index", name)
	case other != "":
		return refuseFile(other)
	default:
		return refuse(hint.NoWeights,
			"the source holds no safetensors weights")
	}
}

func (s *Survey) isAdapter() bool {
	return slices.ContainsFunc(s.files, func(f File) bool {
		return reader.IsAdapter(f.Path) && path.Dir(f.Path) == path.Clean(s.Dir)
	})
}

// find returns the first file in the folder of the weights that is of a kind, or "".
func (s *Survey) find(isKind func(path string) bool) string {
	for _, f := range s.files {
		if isKind(f.Path) && (s.Dir == "" || strings.HasPrefix(f.Path, s.Dir+"/")) {
			return f.Path
		}
	}
	return ""
}
