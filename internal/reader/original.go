package reader

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/names"
)

// An Original is a model to convert, as the programs that read it see it.
type Original struct {
	Layout catalog.Layout // of the result
	Dir    string         // folder of the weights that are converted, "" for the root
	// Variant is the variant with which a pipeline loads the parts that have no weights under plain
	// names: "bf16" for model.bf16.safetensors. It's "" if every part has plain names.
	Variant string

	paths map[string]bool
	// folders with other weights that a pipeline or sentence-transformers opens
	parts    map[string]bool
	variants map[string]map[string]bool // by part; "" stands for plain names
}

// A Fate is what a conversion does with a file that it doesn't convert.
type Fate int

// Fates.
const (
	Copied Fate = iota
	Part        // copied: weights of another part, which may be large
	Left        // left out: it has no place in the result
	Lost        // left out, although a reader of the original opens it
)

// NewOriginal returns an Original by the paths of all its files. parts are its folders with other
// weights, by model_index.json or modules.json.
func NewOriginal(layout catalog.Layout, dir string, parts, paths []string) *Original {
	o := &Original{Layout: layout, Dir: dir, paths: setOf(paths), parts: setOf(parts),
		variants: map[string]map[string]bool{}}
	for _, p := range paths {
		if v, ok := variantOf(p); ok && IsSafetensors(p) {
			part := o.PartOf(p)
			if o.variants[part] == nil {
				o.variants[part] = map[string]bool{}
			}
			o.variants[part][v] = true
		}
	}
	delete(o.variants, "")
	o.Variant = o.chooseVariant()
	return o
}

func setOf(list []string) map[string]bool {
	set := make(map[string]bool, len(list))
	for _, x := range list {
		set[x] = true
	}
	return set
}

// chooseVariant returns the variant that most parts without plain names have. Of equals it returns
// bf16, whose precision is the model's, or else the first by name.
func (o *Original) chooseVariant() (best string) {
	counts := map[string]int{}
	for _, variants := range o.variants {
		for v := range variants {
			if !variants[""] {
				counts[v]++
			}
		}
	}
	for _, v := range slices.Sorted(maps.Keys(counts)) {
		if n, most := counts[v], counts[best]; n > most || n == most && v == "bf16" {
			best = v
		}
	}
	return best
}

// PartOf returns the other part that a file lies in, or "".
func (o *Original) PartOf(name string) string {
	for dir := path.Dir(name); dir != "." && dir != "/"; dir = path.Dir(dir) {
		if o.parts[dir] {
			return dir
		}
	}
	return ""
}

// named matches the weights and indexes that transformers or diffusers looks for in a folder, with
// the variant in their names.
var named = regexp.MustCompile(`^(?:model|diffusion_pytorch_model)(?:-\d+-of-\d+)?(?:\.(\w+))?` +
	`(?:-\d+-of-\d+)?\.safetensors(?:\.index(?:\.(\w+))?\.json)?$`)

// variantOf returns the variant in the name of a weight file or an index, or "" for a plain name.
// ok is false for files that no library looks for.
func variantOf(name string) (variant string, ok bool) {
	m := named.FindStringSubmatch(path.Base(name))
	if m == nil {
		return "", false
	}
	return m[1] + m[2], true
}

// Fate returns what a conversion does with a file and, unless it's copied, why.
func (o *Original) Fate(name string) (f Fate, why string) {
	base := path.Base(name)
	top, _, nested := strings.Cut(name, "/")
	switch {
	case !names.IsSafe(name):
		return Left, "the path isn't safe"
	case o.Layout == catalog.ComfyUI && !IsNotice(base):
		return Left, "the output is a single file"
	case isHousekeeping(name):
		return Left, "repository housekeeping"
	case strings.EqualFold(name, names.Card):
		return Left, "replaced by the model card of the conversion"
	case name == names.Manifest, !nested && name == names.Config:
		return Left, "written by the conversion"
	case o.opens(name):
		return Part, ""
	case nested && top == "original", strings.HasPrefix(base, "consolidated"):
		return Left, "the model in another layout"
	case IsAdapter(name):
		return o.adapterFate(name)
	case isWeights(base):
		return o.weightsFate(name)
	case index.MatchString(base):
		return Left, "index of the source's weights"
	}
	return Copied, ""
}

// opens reports whether a reader opens a file as weights of another part. A part that is DF11
// already has a file for each unit.
func (o *Original) opens(name string) bool {
	base, part := path.Base(name), o.PartOf(name)
	isUnit := IsSafetensors(base) && !IsLoaded(base) && !IsAdapter(base) &&
		!strings.HasPrefix(base, "consolidated")
	variant, ok := variantOf(base)
	return part != "" && (isUnit || ok && (variant == "" || variant == o.Variant && !o.variants[part][""]))
}

// adapterFate copies an adapter that has a folder of its own. Next to the weights, an adapter would
// be applied to the result.
func (o *Original) adapterFate(name string) (f Fate, why string) {
	switch dir := path.Dir(name); {
	case dir == "." || dir == o.Dir:
		return Lost, "transformers applies this adapter if PEFT is installed"
	case IsPickle(name):
		return Lost, "an adapter as a pickle"
	case IsSafetensors(name):
		return Part, ""
	}
	return Copied, ""
}

// weightsFate separates weights that repeat the model in another form from weights that a reader
// misses.
func (o *Original) weightsFate(name string) (f Fate, why string) {
	dir, part := path.Dir(name), o.PartOf(name)
	isNext := dir == "." || dir == o.Dir
	switch {
	case part != "" && (o.variants[part][""] || o.variants[part][o.Variant]):
		return Left, "weights in another form"
	case part != "":
		return Lost, "weights of " + part + " that aren't safetensors under the usual names"
	case isNext && IsLoaded(name), repeats(name):
		return Left, "weights in another form"
	case IsLoaded(name) && o.paths[dir+"/"+names.Config]:
		return Lost, "a model of its own in a folder"
	case o.Layout.Family() == catalog.Diffusers:
		return Left, "weights that no part of the pipeline opens"
	}
	return Lost, "other weights, which the model's class or own code may open"
}

// anotherForm matches the paths of weights in another form than transformers opens, and of what a
// training leaves.
var anotherForm = regexp.MustCompile(`(?i)(^|/)((onnx|openvino|coreml|metal|tflite|gguf|runs|` +
	`checkpoint-\d+|global_step\d+)/|(training_args|optimizer|scheduler|scaler|rng_state\w*|` +
	`random_states_\d+|openvino_\w+)\.\w+$)`)

// repeats reports whether weights repeat the model for other programs than those of Python, or
// belong to its training.
func repeats(name string) bool {
	isPythons := IsSafetensors(name) || IsPickle(name) || isOf(".npy.npz.", name)
	return !isPythons || anotherForm.MatchString(name)
}
