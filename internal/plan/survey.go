package plan

import (
	"cmp"
	"errors"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/python"
	"github.com/df11-convert/df11-convert/internal/reader"
	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// A Survey is what the file names of a source show: where its weights are, and which small files to
// read before the plan.
type Survey struct {
	Layout     catalog.Layout // the source's family: Transformers, Diffusers or ComfyUI
	Dir        string         // folder of the converted weights: "", or the component of a pipeline
	Config     string         // path of the converted model's config.json; "": there is none
	ModelIndex string         // path of a pipeline's model_index.json; "": no pipeline
	// path of the config.json next to it, where DF11 pipelines say what they are; "": there is none
	RootConfig string
	// path of the index to read, which FindWeights sets; "": there is none
	Index string

	single  string   // path of the one weight file; "": there is none
	set     []string // paths of shards 1 to n, if there is neither a single file nor an index
	byIndex bool     // WeightFiles took the files of Index
	opt     Options
	files   []File
}

// Look surveys the files of a source. [Survey.FindWeights] is the next step.
func Look(files []File, opt Options) (*Survey, error) {
	s := &Survey{opt: opt, files: files}
	if err := s.findModel(opt); err != nil {
		return nil, err
	}
	if s.Layout != catalog.ComfyUI {
		s.Config = s.has(path.Join(s.Dir, names.Config))
	}
	return s, nil
}

// has returns p if the source holds it, or else "".
func (s *Survey) has(p string) string {
	if slices.ContainsFunc(s.files, func(f File) bool { return f.Path == p }) {
		return p
	}
	return ""
}

// hasFolder reports whether the source holds a folder.
func (s *Survey) hasFolder(dir string) bool {
	return slices.ContainsFunc(s.files,
		func(f File) bool { return strings.HasPrefix(f.Path, dir+"/") })
}

// findModel decides the family and the folder of the weights.
func (s *Survey) findModel(opt Options) error {
	switch {
	case opt.Layout != "":
		s.Layout = opt.Layout.Family()
	case opt.WeightFile != "":
		s.Layout = reader.FamilyOf(opt.WeightFile)
	case s.has(names.ModelIndex) != "", s.hasUsual(catalog.Diffusers):
		s.Layout = catalog.Diffusers
	case s.has(names.Config) == "" && !s.hasUsual(catalog.Transformers):
		s.Layout = catalog.ComfyUI
	default:
		s.Layout = catalog.Transformers
	}
	if s.Layout == catalog.Diffusers && s.has(names.ModelIndex) != "" {
		return s.findComponent(opt)
	}
	if opt.Component != "" {
		return refuse(hint.NoPipeline,
			"you asked for a component, but the source isn't a pipeline")
	}
	return nil
}

// usualFiles returns the files by which a library finds its weights in a folder: a single file, and
// an index. Either may be "".
func (s *Survey) usualFiles(dir string, family catalog.Layout) (single, index string) {
	single = path.Join(dir, family.Stem()) + ".safetensors"
	return s.has(single), s.has(single + indexEnd)
}

// indexEnd ends the name of an index after that of the single file.
const indexEnd = ".index.json"

// hasUsual reports whether a library finds weights in the source's first folder.
func (s *Survey) hasUsual(family catalog.Layout) bool {
	single, index := s.usualFiles("", family)
	return single+index != ""
}

// findComponent chooses which folder of a pipeline is converted.
func (s *Survey) findComponent(opt Options) error {
	s.ModelIndex, s.RootConfig = names.ModelIndex, s.has(names.Config)
	choices := []string{"transformer", "unet"}
	switch {
	case opt.Component != "":
		choices = []string{opt.Component}
	case opt.WeightFile != "":
		choices = []string{path.Dir(opt.WeightFile)}
	}
	for _, dir := range choices {
		if s.hasFolder(dir) {
			s.Dir = dir
			return nil
		}
	}
	return refuse(hint.NoComponent,
		"the pipeline has no folder %s", strings.Join(choices, " or "))
}

// FindWeights finds the files that name the weights as the reader of the family does, given the
// content of the file Config. transformers follows transformers_weights of the config, and looks for
// the single file before the index. diffusers looks for the index first. FindWeights refuses a source
// without safetensors weights.
func (s *Survey) FindWeights(config []byte) error {
	if s.opt.WeightFile != "" {
		return s.take(s.opt.WeightFile)
	}
	if s.Layout == catalog.ComfyUI {
		return s.findSingle()
	}
	s.single, s.Index = s.usualFiles(s.Dir, s.Layout)
	if stated, err := s.stated(config); stated != "" || err != nil {
		return cmp.Or(err, s.takeStated(stated))
	}
	if s.single+s.Index != "" {
		return nil
	}
	cfg, err := catalog.ReadObject(s.Config, config)
	if _, isFirst := cfg["dfloat11_version"]; err == nil && isFirst {
		return &RefusedError{Detail: "the source is a DF11 model of format 0.1.0, whose weights are " +
			"pickles that no current program loads", Hint: hint.FirstFormat}
	}
	return s.takeSet()
}

// takeSet uses shards without an index if they're all there, as llama.cpp, mlx, and vLLM do:
// uploads of merged models often lack the index (unslothai/unsloth issues 1521, 2355, 2513).
func (s *Survey) takeSet() error {
	sets := map[string][]string{} // by the names' start and the number of shards
	var shard reader.Shard        // any of the only set
	for _, f := range s.files {
		x, ok := reader.ShardOf(f.Path)
		if ok && path.Dir(f.Path) == path.Clean(s.Dir) && path.Base(x.Stem) == s.Layout.Stem() {
			shard = x
			key := x.Stem + "-N-of-" + x.Of
			sets[key] = append(sets[key], f.Path)
		}
	}
	keys := slices.Sorted(maps.Keys(sets))
	if len(keys) == 0 {
		return s.refuseNoWeights()
	}
	if len(keys) > 1 {
		return refuse(hint.TwoShardSets,
			"the source holds several sets of shards, and no index says which is the model: %s",
			human.List(keys))
	}
	s.set = sets[keys[0]]
	slices.Sort(s.set)
	n, err := strconv.Atoi(shard.Of)
	for i := range s.set {
		if want := shard.Number(i + 1); err != nil || s.set[i] != want {
			return refuseShards(want)
		}
	}
	if len(s.set) != n {
		return refuseShards(shard.Number(len(s.set) + 1))
	}
	return nil
}

func refuseShards(missing string) error {
	return refuse(hint.ShardMissing, "the source has no %s, and no index that says what it holds",
		missing)
}

// stated returns the path that transformers_weights of a config names, or "".
func (s *Survey) stated(config []byte) (string, error) {
	if s.Layout != catalog.Transformers || s.Config == "" {
		return "", nil
	}
	cfg, err := catalog.ReadObject(s.Config, config)
	name := catalog.Decode[string](cfg["transformers_weights"])
	if err != nil || name == "" {
		return "", err
	}
	return path.Join(s.Dir, name), nil
}

// takeStated uses the weight file or the index that the config names. It refuses a source that has
// weights under the usual names, too.
func (s *Survey) takeStated(stated string) error {
	for _, other := range []string{s.single, s.Index} {
		if other != "" && other != stated {
			return s.refuseTwo(s.Config+" names "+stated+" as the weights", other)
		}
	}
	if s.has(stated) == "" {
		return refuse(hint.StatedMissing,
			"%s names %s as the weights, which the source doesn't have", s.Config, stated)
	}
	return s.take(stated)
}

// refuseTwo refuses a source that has two sets of weights.
func (s *Survey) refuseTwo(first, second string) error {
	return refuse(hint.TwoSets,
		"the source holds two sets of weights, and programs differ in which they load: %s, and there "+
			"is %s", first, second)
}

// take uses the weight file or the index that the caller or the config named.
func (s *Survey) take(p string) error {
	s.single, s.Index = "", ""
	if strings.HasSuffix(p, ".safetensors"+indexEnd) && s.has(p) != "" &&
		path.Dir(p) == path.Clean(s.Dir) {
		s.Index = p
		return nil
	}
	return s.takeSingle(p)
}

// isPart reports whether a file is one shard of several.
func isPart(p string) bool {
	_, ok := reader.ShardOf(p)
	return ok && !strings.HasSuffix(p, "-00001-of-00001.safetensors")
}

// takeSingle uses the one weight file that the caller named.
func (s *Survey) takeSingle(p string) error {
	switch {
	case s.has(p) == "":
		return refuse(hint.NoSuchFile, "the source holds no file %s", p)
	case !reader.IsSafetensors(p):
		return refuseFile(p)
	case isPart(p):
		return refuse(hint.PartOfModel, "%s is only a part of a model", p)
	case s.isOtherModel(path.Dir(p)):
		return refuse(hint.OtherModel.With("folder", path.Dir(p)),
			"%s is a model of its own, or another component of a pipeline than its denoiser", p)
	}
	s.single = p
	return nil
}

// isOtherModel reports whether a folder holds another model than s.Config describes: it has a
// config of its own, or it's another component of a pipeline.
func (s *Survey) isOtherModel(dir string) bool {
	if dir == "." || dir == s.Dir || s.Layout == catalog.ComfyUI {
		return false
	}
	return s.has(path.Join(dir, names.Config)) != "" || s.has(names.ModelIndex) != ""
}

// findSingle takes the only safetensors file of a source without a config. It ignores shards, and
// the consolidated files that Mistral puts next to those of transformers.
func (s *Survey) findSingle() error {
	var found []string
	for _, f := range s.files {
		if reader.IsSafetensors(f.Path) && !isPart(f.Path) &&
			!strings.HasPrefix(path.Base(f.Path), "consolidated") {
			found = append(found, f.Path)
		}
	}
	switch {
	case len(found) == 0, s.isAdapter():
		return s.refuseNoWeights()
	case len(found) > 1:
		slices.Sort(found)
		return refuse(hint.ManySingles,
			"the source holds several single files (%s)", human.List(found))
	}
	s.single = found[0]
	dir := path.Dir(s.single)
	if dir != "." && s.has(path.Join(dir, names.Config)) != "" &&
		reader.FamilyOf(s.single) != catalog.ComfyUI {
		return refuse(hint.Subfolder,
			"the model lies in the folder %s, with a config of its own", dir)
	}
	return nil
}

// WeightFiles returns the weight files in shard order, given the content of the file Index, or nil
// if there is none. It refuses an index that can't be read, an index that names missing files, and
// an index next to a single file that is none of its files, unless only one of the two can be loaded.
func (s *Survey) WeightFiles(index []byte) ([]File, error) {
	switch {
	case s.set != nil:
		return s.pick(s.set)
	case s.Index == "":
		return s.pick([]string{s.single})
	}
	shards, err := s.shards(index)
	if s.single == "" || err == nil && slices.Equal(shards, []string{s.single}) {
		s.byIndex = err == nil
		return s.pickIf(err, shards)
	}
	missing := func(shard string) bool { return s.has(shard) == "" }
	switch isWhole := err == nil && !slices.ContainsFunc(shards, missing); {
	case isWhole:
		return nil, s.refuseTwo(s.Index+" names "+human.List(shards), s.single)
	case s.Layout == catalog.Diffusers: // which reads the index, and stops
		_, err = s.pickIf(err, shards)
		return nil, err
	}
	return s.pick([]string{s.single})
}

// shards returns the weight files that the content of the file Index names, in order.
func (s *Survey) shards(index []byte) ([]string, error) {
	m, err := s.weightMap(index)
	return slices.Compact(slices.SortedFunc(maps.Values(m), human.CompareNames)), err
}

// pickIf is pick, unless err isn't nil.
func (s *Survey) pickIf(err error, names []string) ([]File, error) {
	if err != nil {
		return nil, err
	}
	return s.pick(names)
}

func (s *Survey) pick(names []string) ([]File, error) {
	byPath := make(map[string]File, len(s.files))
	for _, f := range s.files {
		byPath[f.Path] = f
	}
	out := make([]File, len(names))
	for i, name := range names {
		f, ok := byPath[name]
		if !ok {
			h := hint.IndexMissing
			if s.single != "" {
				h = hint.IndexOrSingle.With("file", s.single)
			}
			return nil, refuse(h, "%s names %s, which the source doesn't have", s.Index, name)
		}
		if !reader.IsSafetensors(name) {
			return nil, refuseFile(name)
		}
		out[i] = f
	}
	return out, nil
}

// weightMap reads the content of the file Index. It returns the path of each tensor's file.
func (s *Survey) weightMap(data []byte) (map[string]string, error) {
	var index struct {
		WeightMap map[string]string `json:"weight_map"`
	}
	err := python.Bounded(data, 2*safetensors.MaxTensors, 2*safetensors.MaxTensors)
	if err == nil {
		err = python.Unmarshal(data, &index)
	}
	if err == nil && len(index.WeightMap) == 0 {
		err = errors.New("it lists no tensors")
	}
	if err != nil {
		return nil, refuse(hint.Unread, "read %s: %v", s.Index, err)
	}
	for name, file := range index.WeightMap {
		index.WeightMap[name] = path.Join(s.Dir, file)
	}
	return index.WeightMap, nil
}

func isGGUF(name string) bool { return strings.EqualFold(path.Ext(name), ".gguf") }

// refuseFile refuses a file whose name shows that it can't be a source.
func refuseFile(name string) error {
	switch {
	case isGGUF(name):
		return refuse(hint.GGUF, "%s holds GGUF weights, not BF16 safetensors", name)
	case reader.IsPickle(name):
		return refuse(hint.Pickle,
			"%s is a pickle checkpoint: it can run code, so df11-convert never loads it", name)
	default:
		return refuse(hint.NoWeights, "%s is neither a folder nor a .safetensors file", name)
	}
}

// refuseNoWeights says which kind of weights the source holds instead.
func (s *Survey) refuseNoWeights() error {
	isOther := func(p string) bool { return isGGUF(p) || reader.IsPickle(p) }
	other := s.find(isOther)
	switch {
	case s.has(names.Manifest) != "":
		return refuseDF11("the source is a DF11 model already (it has a df11-manifest.json)")
	case s.isAdapter():
		return refuse(hint.Adapter, "the source is a LoRA adapter, not a model")
	case s.has(path.Join(s.Dir, names.Remainder+".safetensors")) != "":
		return refuseDF11("the source holds a remainder.safetensors, as DF11 models do, and no weights of an original")
	case s.find(reader.IsSafetensors) != "":
		return refuse(hint.UnusualName, "the source has neither %s.safetensors nor its index",
			path.Join(s.Dir, s.Layout.Stem()))
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
