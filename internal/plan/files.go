package plan

import (
	"path"
	"slices"
	"strings"
)

// weightExts are the extensions of weights in any format; such files are never carried over.
var weightExts = map[string]bool{
	".safetensors": true, ".bin": true, ".pt": true, ".pth": true, ".ckpt": true, ".gguf": true, ".ggml": true,
	".onnx": true, ".onnx_data": true, ".h5": true, ".hdf5": true, ".keras": true, ".msgpack": true, ".npz": true,
	".npy": true, ".pickle": true, ".pkl": true, ".joblib": true, ".tflite": true, ".pb": true, ".ot": true,
	".nemo": true, ".engine": true, ".mlmodel": true, ".mlpackage": true, ".weights": true, ".pdparams": true,
	".llamafile": true, ".distcp": true, ".tar": true, ".zip": true, ".mar": true, ".exe": true,
}

// fileSorter decides about every file of the source that is not converted.
type fileSorter struct{ *draft }

// sort sorts the files into copied, components and not copied, and decides how config.json comes about.
func (s fileSorter) sort() error {
	s.planConfig()
	converted := map[string]bool{}
	for _, w := range s.src.Weights {
		converted[w.Path] = true
	}
	components := s.componentWeights()
	for _, f := range sortedFiles(s.src.Files) {
		why := s.whySkipped(f)
		switch {
		case converted[f.Path] || f.Path == s.plan.Config.Source:
		case components[f.Path]:
			s.plan.Components = append(s.plan.Components, f)
		case why != "":
			s.plan.NotCopied = append(s.plan.NotCopied, Skipped{Path: f.Path, Why: why})
		default:
			s.plan.Copied = append(s.plan.Copied, f)
		}
	}
	return s.checkCopies()
}

// planConfig: the source's config gets one member inserted; a pipeline gets a small one of its own at the root, where
// the units lie; a single ComfyUI file has none (docs/format.md §12).
func (s fileSorter) planConfig() {
	switch {
	case s.plan.Layout == ComfyUI:
		s.plan.Config = ConfigPlan{Mode: ConfigNone}
	case s.survey.Config == "" || s.survey.Dir != "":
		s.plan.Config = ConfigPlan{Mode: ConfigNew}
	default:
		s.plan.Config = ConfigPlan{Mode: ConfigInsert, Source: s.survey.Config}
	}
}

// sortedFiles returns the files by path.
func sortedFiles(files []File) []File {
	out := slices.Clone(files)
	slices.SortFunc(out, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// whySkipped says why a file has no place in the output; "" if it is copied.
func (s fileSorter) whySkipped(f File) string {
	base := path.Base(f.Path)
	ext := strings.ToLower(path.Ext(base))
	top, _, nested := strings.Cut(f.Path, "/")
	switch {
	case !safePath(f.Path):
		return "the path is not safe"
	case s.plan.Layout == ComfyUI && !isNotice(base):
		return "the output is a single file"
	case isHousekeeping(f.Path):
		return "repository housekeeping"
	case strings.EqualFold(f.Path, "README.md"):
		return "replaced by the model card of the conversion"
	case f.Path == "df11-manifest.json", !nested && f.Path == "config.json":
		return "written anew"
	case nested && top == "original", strings.HasPrefix(base, "consolidated"):
		return "the model in another layout"
	case weightExts[ext], strings.HasPrefix(ext, ".data-"), strings.Contains(base, ".onnx_data"), strings.Contains(base, ".onnx.data"):
		return "weights"
	case strings.HasSuffix(base, ".index.json"):
		return "index of the source's weights"
	default:
		return ""
	}
}

// isHousekeeping says whether a file belongs to git, to a download cache or to an unfinished conversion.
func isHousekeeping(p string) bool {
	return slices.ContainsFunc(strings.Split(p, "/"), func(part string) bool {
		return strings.HasPrefix(part, ".git") || part == ".cache" || part == ".df11" || part == ".DS_Store"
	})
}

// isNotice says whether a file carries licence terms.
func isNotice(base string) bool {
	up := strings.ToUpper(base)
	return strings.HasPrefix(up, "LICENSE") || strings.HasPrefix(up, "LICENCE") || strings.HasPrefix(up, "NOTICE") ||
		strings.HasPrefix(up, "USE_POLICY") || strings.HasPrefix(up, "COPYING")
}

// safePath says whether a path is relative, clean and free of characters that some file system refuses.
func safePath(p string) bool {
	if p == "" || path.IsAbs(p) || path.Clean(p) != p || p == "." || p == ".." || strings.HasPrefix(p, "../") {
		return false
	}
	return !strings.ContainsFunc(p, func(r rune) bool { return r < ' ' || r == 0x7f || strings.ContainsRune(`\:*?"<>|`, r) })
}

// componentWeights returns the weights of a pipeline's other components that the pipeline loads: the safetensors files
// without a variant, in the folders that model_index.json names.
func (s fileSorter) componentWeights() map[string]bool {
	out := map[string]bool{}
	for _, dir := range componentDirs(s.src.ModelIndex) {
		if dir == s.survey.Dir {
			continue
		}
		for _, f := range s.src.Files {
			if path.Dir(f.Path) == dir && isPlainWeight(path.Base(f.Path)) && safePath(f.Path) {
				out[f.Path] = true
			}
			if path.Dir(f.Path) == dir && isPlainIndex(path.Base(f.Path)) {
				out[f.Path] = true
			}
		}
	}
	return out
}

// componentDirs lists the components of a model_index.json, in name order.
func componentDirs(modelIndex []byte) []string {
	var dirs []string
	for key := range object(lenientJSON(modelIndex)) {
		if !strings.HasPrefix(key, "_") && !strings.ContainsAny(key, `/\`) {
			dirs = append(dirs, key)
		}
	}
	slices.Sort(dirs)
	return dirs
}

// isPlainWeight says whether a file is one that transformers or diffusers loads by default: no fp16 variant, no other
// format.
func isPlainWeight(base string) bool {
	name, ok := strings.CutSuffix(base, ".safetensors")
	for _, stem := range []string{"model", "diffusion_pytorch_model"} {
		if ok && (name == stem || isShardName(name, stem)) {
			return true
		}
	}
	return false
}

// isPlainIndex says whether a file is the index of such weights.
func isPlainIndex(base string) bool {
	return base == "model.safetensors.index.json" || base == "diffusion_pytorch_model.safetensors.index.json"
}

// checkCopies refuses copies that collide with each other or with an output file on file systems that ignore case.
func (s fileSorter) checkCopies() error {
	taken := map[string]string{"config.json": "config.json", "readme.md": "README.md", "df11-manifest.json": "df11-manifest.json"}
	if s.plan.RemainderIndex != "" {
		taken[strings.ToLower(s.plan.RemainderIndex)] = s.plan.RemainderIndex
	}
	for _, f := range s.plan.OutputFiles {
		taken[strings.ToLower(f.Path)] = f.Path
	}
	for _, f := range slices.Concat(s.plan.Copied, s.plan.Components) {
		key := strings.ToLower(f.Path)
		if other, ok := taken[key]; ok {
			return refuse(ReasonName, "rename one of them in a copy of the source",
				"%s and %s differ only in case, which some file systems ignore", other, f.Path)
		}
		taken[key] = f.Path
	}
	return nil
}
