package reader

import (
	"path"
	"regexp"
	"strings"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/names"
)

// An Original is a model to convert, as the programs that read it see it.
type Original struct {
	Layout catalog.Layout // of the result
	Dir    string         // folder of the weights that are converted, "" for the root
	Folder *Folder        // of a local original; nil for a repo

	paths map[string]bool
	parts map[string]bool // folders with other weights that a pipeline opens
	whole map[string]bool // the parts that have weights under the names that libraries look for
}

// A Fate is what a conversion does with a file that it doesn't convert.
type Fate int

// Fates.
const (
	Copied   Fate = iota
	Part          // copied: weights of another part, which may be large
	Left          // left out: it has no place in the result
	Withheld      // left out: the folder keeps it back, although a reader of the model opens it
	Lost          // left out, although a reader of the original opens it
	Stays         // left out: no reader of the model in that folder opens it, and its name is private too
)

// NewOriginal returns an Original by the paths of all its files. parts are its folders with other
// weights, by model_index.json.
func NewOriginal(layout catalog.Layout, dir string, parts, paths []string) *Original {
	o := &Original{Layout: layout, Dir: dir, paths: setOf(paths), parts: setOf(parts),
		whole: map[string]bool{}}
	for _, p := range paths {
		if IsSafetensors(p) && isFound(p) {
			o.whole[o.PartOf(p)] = true
		}
	}
	return o
}

func setOf(list []string) map[string]bool {
	set := make(map[string]bool, len(list))
	for _, x := range list {
		set[x] = true
	}
	return set
}

// sentencePart matches the folders of sentence-transformers' further modules, such as 2_Dense.
// There are some only next to a modules.json: 1000_steps elsewhere is a copy of the model.
var sentencePart = regexp.MustCompile(`^\d+_\w+$`)

// PartOf returns the other part that a file lies in, or "".
func (o *Original) PartOf(name string) string {
	for dir := path.Dir(name); dir != "." && dir != "/"; dir = path.Dir(dir) {
		if o.parts[dir] || o.paths["modules.json"] && sentencePart.MatchString(dir) {
			return dir
		}
	}
	return ""
}

// isFound reports whether transformers or diffusers finds the weights or the index by their name.
// Names with a variant, such as model.fp16.safetensors, are found on request only.
func isFound(name string) bool {
	weights := strings.TrimSuffix(name, ".index.json")
	return IsSafetensors(weights) && IsUsual(weights)
}

// Fate returns what a conversion does with a file and, unless it's copied, why. From a local
// folder, only what a reader of the model opens is copied, and what a caller includes. Weights of a
// part that a .gitignore names are lost: the model doesn't load without them. What else it names,
// though readers open it, is left out.
func (o *Original) Fate(name string) (f Fate, why string) {
	f, why = o.fate(name)
	if o.Folder == nil || o.Folder.Includes(name) {
		return f, why
	}
	dir := path.Dir(name)
	opens := o.Folder.isOpened(name)
	switch { // of what isn't copied, only names that many models have, in folders that the model names
	case opens && (f == Copied || f == Part), opens && o.Folder.dirs[dir] && isCommon(path.Base(name)),
		name == names.Attributes, strings.EqualFold(name, names.Card), name == names.Manifest,
		dir == "." && (name == names.Config || IsAdapter(name)):
		return f, why
	case f == Part && o.PartOf(name) != "" && isFound(name) && (o.parts[dir] || o.Folder.dirs[dir]):
		return Lost, o.Folder.whyKept(name, "a .gitignore names these weights of "+o.PartOf(name))
	case f == Copied && o.Folder.withholds(name):
		return Withheld, o.Folder.whyKept(name, "named by a .gitignore, though readers open such files")
	}
	return Stays, ""
}

// isCommon reports whether many models have a file of a name that readers open, or people need.
func isCommon(base string) bool {
	return opened[base] || IsNotice(base) || isFound(base) || isVariant(base)
}

// fate is Fate for a repo.
func (o *Original) fate(name string) (f Fate, why string) {
	base := path.Base(name)
	top, _, nested := strings.Cut(name, "/")
	switch {
	case !names.IsSafe(name):
		return Lost, "a repo or a file system may refuse its name"
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
		return Left, "an index of weights"
	}
	return Copied, ""
}

// opens reports whether a reader opens a file as the weights of another component. One that is DF11
// already has a file for each unit.
func (o *Original) opens(name string) bool {
	base, part := path.Base(name), o.PartOf(name)
	isUnit := IsSafetensors(base) && !IsLoaded(base) && !IsAdapter(base) &&
		!strings.HasPrefix(base, "consolidated")
	return part != "" && (isUnit || isFound(name))
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
	case o.whole[part] && part != "":
		return Left, "weights in another form"
	case part != "":
		return Lost, "weights of " + part + " that aren't safetensors under the usual names"
	case isNext && isFound(name):
		return Lost, "other weights under a name that libraries look for"
	case training.MatchString(name):
		return Left, "left by a training"
	case isNext && IsLoaded(name), repeats(name):
		return Left, "weights in another form"
	case IsLoaded(name) && o.paths[dir+"/"+names.Config]:
		return Lost, "a model of its own in a folder"
	case o.Layout.Family() == catalog.Diffusers:
		return Left, "weights that no part of the pipeline opens"
	}
	return Lost, "other weights, which the model's class or own code may open"
}

// anotherForm matches the paths of weights in another form than transformers opens.
var anotherForm = regexp.MustCompile(
	`(?i)(^|/)((onnx|openvino|coreml|metal|tflite|gguf)/|openvino_\w+\.\w+$)`)

// training matches the paths of what a training leaves: logs, checkpoints, and its state.
var training = regexp.MustCompile(`(?i)(^|/)((runs|checkpoint-\d+|global_step\d+)/|` +
	`(training_args|optimizer|scheduler|scaler|rng_state\w*|random_states_\d+)\.\w+$)`)

// repeats reports whether weights repeat the model for other programs than those of Python.
func repeats(name string) bool {
	isPythons := IsSafetensors(name) || IsPickle(name) || isOf(".npy.npz.", name)
	return !isPythons || anotherForm.MatchString(name)
}
