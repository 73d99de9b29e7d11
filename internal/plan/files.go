package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/names"
)

// weightExts are the extensions of weights in any format. Such files are never copied.
var weightExts = map[string]bool{
	".safetensors": true, ".bin": true, ".pt": true, ".pth": true, ".ckpt": true, ".gguf": true,
	".ggml": true,
	".onnx": true, ".onnx_data": true, ".h5": true, ".hdf5": true, ".keras": true, ".msgpack": true,
	".npz": true,
	".npy": true, ".pickle": true, ".pkl": true, ".joblib": true, ".tflite": true, ".pb": true,
	".ot":   true,
	".nemo": true, ".engine": true, ".mlmodel": true, ".mlpackage": true, ".weights": true,
	".pdparams":  true,
	".llamafile": true, ".distcp": true, ".tar": true, ".zip": true, ".mar": true, ".exe": true,
}

// sortFiles sorts the files that are not converted into copied, components and not copied, and
// decides how config.json comes about.
func (p *Plan) sortFiles(r *reading) error {
	// whose config.json lies elsewhere, or is not read
	if p.Layout != catalog.ComfyUI && r.survey.Dir == "" {
		p.Config = r.survey.Config
	}
	converted := map[string]bool{}
	for _, w := range p.source.Weights {
		if !names.IsSafe(w.Path) {
			return refuse(catalog.RenameHint,
				"the weight file %q has a name that a repo or a file system refuses", w.Path)
		}
		converted[w.Path] = true
	}
	parts, err := catalog.ReadObject(r.survey.ModelIndex, p.source.ModelIndex)
	if err != nil {
		return err
	}
	own := catalog.Decode[[2]string](parts[r.survey.Dir])
	maps.DeleteFunc(parts, func(dir string, _ json.RawMessage) bool {
		return dir == r.survey.Dir || strings.HasPrefix(dir, "_") || strings.ContainsAny(dir, `/\`)
	})
	components := p.source.componentWeights(parts)
	byPath := func(a, b File) int { return strings.Compare(a.Path, b.Path) }
	for _, f := range slices.SortedFunc(slices.Values(p.source.Files), byPath) {
		why := p.whySkipped(f)
		switch {
		case converted[f.Path] || f.Path == p.Config:
		case components[f.Path]:
			p.Components = append(p.Components, f)
		case why != "":
			p.NotCopied = append(p.NotCopied, Skipped{Path: f.Path, Why: why})
		default:
			p.Copied = append(p.Copied, f)
		}
	}
	p.judgeParts(parts, own)
	return p.checkCopies()
}

// isWeights is why weights are left out that are neither converted nor part of another component.
const isWeights = "weights"

// whySkipped says why a file has no place in the output; "" if it is copied.
func (p *Plan) whySkipped(f File) string {
	base := path.Base(f.Path)
	ext := strings.ToLower(path.Ext(base))
	top, _, nested := strings.Cut(f.Path, "/")
	switch {
	case !names.IsSafe(f.Path):
		return "the path is not safe"
	case p.Layout == catalog.ComfyUI && !IsNotice(base):
		return "the output is a single file"
	case isHousekeeping(f.Path):
		return "repository housekeeping"
	case strings.EqualFold(f.Path, names.Card):
		return "replaced by the model card of the conversion"
	case f.Path == names.Manifest, !nested && f.Path == names.Config:
		return "written anew"
	case nested && top == "original", strings.HasPrefix(base, "consolidated"):
		return "the model in another layout"
	case weightExts[ext], strings.HasPrefix(ext, ".data-"), strings.Contains(base,
		".onnx_data"), strings.Contains(base, ".onnx.data"):
		return isWeights
	case strings.HasSuffix(base, ".index.json"):
		return "index of the source's weights"
	default:
		return ""
	}
}

// isHousekeeping says whether a file belongs to git, to a download cache or to an unfinished
// conversion.
func isHousekeeping(p string) bool {
	return slices.ContainsFunc(strings.Split(p, "/"), func(part string) bool {
		return strings.HasPrefix(part, ".git") || strings.HasPrefix(part, names.Ours) ||
			part == ".cache" || part == ".DS_Store"
	})
}

// IsNotice says whether a file carries license terms, by its name.
func IsNotice(name string) bool { return notice.MatchString(path.Base(name)) }

var notice = regexp.MustCompile(`(?i)^(LICEN[CS]E|NOTICE|USE_POLICY|COPYING)`)

// IsSafetensors says whether a file is a safetensors file, by its name.
func IsSafetensors(name string) bool { return path.Ext(name) == ".safetensors" }

// IsWeightName says whether a path can be that of a source's weight file: safe, to a .safetensors
// file, and not hidden.
func IsWeightName(p string) bool {
	return names.IsSafe(p) && !strings.HasPrefix(p, ".") && !strings.Contains(p, "/.") &&
		IsSafetensors(p)
}

// shardNumber matches the end of the name of a shard: -00001-of-00002.
var shardNumber = regexp.MustCompile(`-\d+-of-\d+$`)

// hasStem says whether the name of a file, without its extension, is stem, or stem with the number
// of a shard.
func hasStem(name, stem string) bool { return shardNumber.ReplaceAllString(name, "") == stem }

// ShardOf says whether a file is one of several that hold a model, and returns the start of their
// names.
func ShardOf(p string) (stem string, ok bool) {
	name := strings.TrimSuffix(p, ".safetensors")
	stem = shardNumber.ReplaceAllString(name, "")
	return stem, stem != name && IsSafetensors(p)
}

// plainWeight matches the weights and indexes that transformers or diffusers loads by default.
var plainWeight = regexp.MustCompile(
	`^(model|diffusion_pytorch_model)((-\d+-of-\d+)?\.safetensors|\.safetensors\.index\.json)$`)

// loadedName matches the names by which libraries find the weights of a folder, or their index;
// case counts on some systems only.
var loadedName = regexp.MustCompile(
	`(?i)^(model|pytorch_model|diffusion_pytorch_model|flax_model|diffusion_flax_model|tf_model)[.-]`)

// IsLoaded says whether a library may take a file for the weights of its folder, whatever the
// format, or for their index.
func IsLoaded(p string) bool {
	base := strings.ToLower(path.Base(p))
	return loadedName.MatchString(base) &&
		(weightExts[path.Ext(base)] || strings.HasSuffix(base, ".index.json"))
}

// componentWeights returns the weights that a pipeline loads for its other components.
func (s Source) componentWeights(parts catalog.Members) map[string]bool {
	out := map[string]bool{}
	for _, f := range s.Files {
		base := path.Base(f.Path)
		_, ok := parts[path.Dir(f.Path)]
		// of a component that is DF11
		isUnit := IsSafetensors(base) && FamilyOf(base) == catalog.ComfyUI &&
			!strings.HasPrefix(base,
				"consolidated")
		if ok && (isUnit || plainWeight.MatchString(base)) && names.IsSafe(f.Path) {
			out[f.Path] = true
		}
	}
	return out
}

// judgeParts warns of parts of a pipeline that the output lacks: the source has no folder for them,
// or no weights that a pipeline loads by default. A part of the class that is converted, such as
// the second expert of Wan 2.2, stays BF16: the official loader takes the units of one model from a
// repo.
func (p *Plan) judgeParts(parts catalog.Members, own [2]string) {
	there, left, size := map[string]bool{}, map[string]bool{}, map[string]int64{}
	for _, f := range p.source.Files {
		top, _, _ := strings.Cut(f.Path, "/")
		there[top] = true
	}
	for _, f := range p.NotCopied {
		left[path.Dir(f.Path)] = left[path.Dir(f.Path)] || f.Why == isWeights
	}
	for _, f := range p.Components {
		delete(left, path.Dir(f.Path))
		size[path.Dir(f.Path)] += f.Size
	}
	var lacking []string
	for _, dir := range slices.Sorted(maps.Keys(parts)) {
		// nulls for a part that the pipeline does without
		class := catalog.Decode[[2]string](parts[dir])
		switch {
		case class[1] == "":
		case left[dir] || !there[dir]:
			lacking = append(lacking, dir)
		case class == own:
			p.Twin = fmt.Sprintf(
				"%s (%s) stays BF16, since a DF11 repo holds one compressed part: compress it into another repo "+
					"with --component %s", dir, human.Bytes(size[dir]), dir)
		}
	}
	if len(lacking) > 0 {
		p.warn(
			"the pipeline does not load without what the source lacks, or does not hold as safetensors under the usual names: %s",
			strings.Join(lacking, ", "))
	}
}

// checkCopies refuses copies that collide with each other or with an output file.
func (p *Plan) checkCopies() error {
	paths := []string{names.Config, names.Card, names.Manifest}
	if p.RemainderIndex != "" {
		paths = append(paths, p.RemainderIndex)
	}
	for _, f := range p.OutputFiles {
		paths = append(paths, f.Path)
	}
	for _, f := range slices.Concat(p.Copied, p.Components) {
		paths = append(paths, f.Path)
	}
	if a, b := Collision(paths); a != "" {
		return refuse("rename one of them in a copy of the source",
			"%s and %s cannot both exist (names that differ only in case are the same on some file systems)", a, b)
	}
	return nil
}
