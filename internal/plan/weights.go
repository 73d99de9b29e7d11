package plan

import (
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

// indexEnd ends the name of an index after that of the single file.
const indexEnd = ".index.json"

// A WeightSet says which files name or hold the weights of a source: a single file, an index, both,
// or shards without an index. It never changes.
type WeightSet struct {
	Index string // path of the index to read; "": there is none

	survey *Survey
	single string   // path of the one weight file; "": there is none
	shards []string // paths of shards 1 to n, if there is neither a single file nor an index
}

// FindWeights finds the files that name the weights as the reader of the family does, given the
// content of the file Config. transformers follows transformers_weights of the config, and looks
// for the single file before the index. diffusers looks for the index first. FindWeights refuses a
// source without safetensors weights. [WeightSet.Files] is the next step.
func (s *Survey) FindWeights(config []byte) (*WeightSet, error) {
	if s.opt.WeightFile != "" {
		return s.named(s.opt.WeightFile)
	}
	if s.Layout == catalog.ComfyUI {
		return s.findSingle()
	}
	usual := &WeightSet{survey: s}
	usual.single, usual.Index = s.usualFiles(s.Dir, s.Layout)
	stated, err := s.stated(config)
	switch {
	case err != nil:
		return nil, err
	case stated != "":
		return s.findStated(stated, usual)
	case usual.single+usual.Index != "":
		return usual, nil
	}
	cfg, err := catalog.ReadObject(s.Config, config)
	if _, isFirst := cfg["dfloat11_version"]; err == nil && isFirst {
		return nil, &RefusedError{Detail: "the source is a DF11 model of format 0.1.0, whose weights are " +
			"pickles that no current program loads", Hint: hint.FirstFormat}
	}
	return s.findShards()
}

// findStated returns the weight file or the index that the config names. It refuses a source that
// has weights under the usual names, too.
func (s *Survey) findStated(stated string, usual *WeightSet) (*WeightSet, error) {
	for _, other := range []string{usual.single, usual.Index} {
		if other != "" && other != stated {
			return nil, refuseTwo(s.Config+" names "+stated+" as the weights", other)
		}
	}
	if s.has(stated) == "" {
		return nil, refuse(hint.StatedMissing,
			"%s names %s as the weights, which the source doesn't have", s.Config, stated)
	}
	return s.named(stated)
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

// named returns the weight file or the index that the caller or the config names.
func (s *Survey) named(p string) (*WeightSet, error) {
	if strings.HasSuffix(p, ".safetensors"+indexEnd) && s.has(p) != "" &&
		path.Dir(p) == path.Clean(s.Dir) {
		return &WeightSet{survey: s, Index: p}, nil
	}
	switch {
	case s.has(p) == "":
		return nil, s.unknownFile(p)
	case !reader.IsSafetensors(p):
		return nil, refuseFile(p)
	case isPart(p):
		return nil, refuse(hint.PartOfModel, "%s is only a part of a model", p)
	case s.isOtherModel(path.Dir(p)):
		return nil, refuse(hint.OtherModel.With("folder", path.Dir(p)),
			"%s is a model of its own, or a component of a pipeline that isn't its denoiser", p)
	}
	return &WeightSet{survey: s, single: p}, nil
}

// unknownFile refuses a file of weights that the source doesn't have.
func (s *Survey) unknownFile(p string) error {
	var files []string
	for _, f := range s.files {
		if reader.IsSafetensors(f.Path) || strings.HasSuffix(f.Path, ".safetensors"+indexEnd) {
			files = append(files, f.Path)
		}
	}
	h := hint.NoWeights
	if files != nil {
		h = hint.NoSuchFile.With("files", human.List(human.Near(p, files)))
	}
	return unknown(h, "the source holds no file %s", p)
}

// isOtherModel reports whether a folder holds another model than s.Config describes: it has a
// config of its own, or it's another component of a pipeline.
func (s *Survey) isOtherModel(dir string) bool {
	if dir == "." || dir == s.Dir || s.Layout == catalog.ComfyUI {
		return false
	}
	return s.has(path.Join(dir, names.Config)) != "" || s.has(names.ModelIndex) != ""
}

// findShards returns shards without an index if they're all there, as llama.cpp, mlx, and vLLM do:
// uploads of merged models often lack the index (unslothai/unsloth issues 1521, 2355, 2513).
func (s *Survey) findShards() (*WeightSet, error) {
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
		return nil, s.refuseNoWeights()
	}
	if len(keys) > 1 {
		return nil, refuse(hint.TwoShardSets,
			"the source holds several sets of shards, and no index says which is the model: %s",
			human.List(keys))
	}
	shards := slices.Sorted(slices.Values(sets[keys[0]]))
	n, err := strconv.Atoi(shard.Of)
	for i := range shards {
		if want := shard.Number(i + 1); err != nil || shards[i] != want {
			return nil, refuseShards(want)
		}
	}
	if len(shards) != n {
		return nil, refuseShards(shard.Number(len(shards) + 1))
	}
	return &WeightSet{survey: s, shards: shards}, nil
}

func refuseShards(missing string) error {
	return refuse(hint.ShardMissing, "the source has no %s, and no index that says what it holds",
		missing)
}

// findSingle returns the only safetensors file of a source without a config. It ignores shards, and
// the consolidated files that Mistral puts next to those of transformers.
func (s *Survey) findSingle() (*WeightSet, error) {
	var found []string
	for _, f := range s.files {
		if reader.IsSafetensors(f.Path) && !isPart(f.Path) &&
			!strings.HasPrefix(path.Base(f.Path), "consolidated") {
			found = append(found, f.Path)
		}
	}
	dirs := s.modelFolders()
	outside := func(name string) bool {
		return !slices.Contains(dirs, path.Dir(name)) && !reader.IsAdapter(path.Base(name))
	}
	switch {
	case s.isAdapter():
		return nil, s.refuseNoWeights()
	case len(dirs) > 0 && !slices.ContainsFunc(found, outside):
		return nil, &RefusedError{Hint: hint.Subfolder.With("folder", dirs[0]),
			Detail: "the model isn't at the top, but in a folder with a config of its own: " +
				human.List(dirs), Folder: dirs[0]}
	case len(found) == 0:
		return nil, s.refuseNoWeights()
	case len(found) > 1:
		slices.Sort(found)
		return nil, refuse(hint.ManySingles,
			"the source holds several single files (%s)", human.List(found))
	}
	return &WeightSet{survey: s, single: found[0]}, nil
}

// modelFolders lists the folders below the source's that hold a model of their own, such as the
// checkpoints of a training: a config, and weights under a library's names.
func (s *Survey) modelFolders() (dirs []string) {
	for _, f := range s.files {
		dir := path.Dir(f.Path)
		_, isShard := reader.ShardOf(f.Path)
		if reader.IsSafetensors(f.Path) && (isShard || reader.FamilyOf(f.Path) != catalog.ComfyUI) &&
			dir != "." && !slices.Contains(dirs, dir) && s.has(path.Join(dir, names.Config)) != "" {
			dirs = append(dirs, dir)
		}
	}
	slices.SortFunc(dirs, human.CompareNames)
	return dirs
}

// isPart reports whether a file is one shard of several.
func isPart(p string) bool {
	_, ok := reader.ShardOf(p)
	return ok && !strings.HasSuffix(p, "-00001-of-00001.safetensors")
}

// Files returns the weight files in shard order, given the content of the file Index, or nil if
// there is none. It refuses an index that can't be read, an index that names missing files, and an
// index next to a single file that it doesn't name, unless only one of the two can be loaded.
func (w *WeightSet) Files(index []byte) ([]File, error) {
	files, _, err := w.resolve(index)
	return files, err
}

// resolve returns the weight files and, if the index names them, the path of each tensor's file.
func (w *WeightSet) resolve(index []byte) (files []File, weightMap map[string]string, err error) {
	switch {
	case w.shards != nil:
		files, err = w.pick(w.shards)
		return files, nil, err
	case w.Index == "":
		files, err = w.pick([]string{w.single})
		return files, nil, err
	}
	weightMap, indexErr := w.readIndex(index)
	named := slices.Compact(slices.SortedFunc(maps.Values(weightMap), human.CompareNames))
	isMissing := func(p string) bool { return w.survey.has(p) == "" }
	isAlone := w.single == "" || slices.Equal(named, []string{w.single})
	switch {
	case indexErr == nil && !isAlone && !slices.ContainsFunc(named, isMissing):
		return nil, nil, refuseTwo(w.Index+" names "+human.List(named), w.single)
	case isAlone, w.survey.Layout == catalog.Diffusers: // which reads the index, and stops
		if indexErr != nil {
			return nil, nil, indexErr
		}
		files, err = w.pick(named)
		return files, weightMap, err
	}
	files, err = w.pick([]string{w.single}) // transformers doesn't look at the stale index
	return files, nil, err
}

// pick returns the files at paths. It refuses paths of missing files, and of files that don't hold
// weights.
func (w *WeightSet) pick(paths []string) ([]File, error) {
	byPath := make(map[string]File, len(w.survey.files))
	for _, f := range w.survey.files {
		byPath[f.Path] = f
	}
	out := make([]File, len(paths))
	for i, p := range paths {
		f, ok := byPath[p]
		if !ok {
			h := hint.IndexMissing
			if w.single != "" {
				h = hint.IndexOrSingle.With("file", w.single)
			}
			return nil, refuse(h, "%s names %s, which the source doesn't have", w.Index, p)
		}
		if !reader.IsSafetensors(p) {
			return nil, refuseFile(p)
		}
		out[i] = f
	}
	return out, nil
}

// readIndex reads the content of the file Index. It returns the path of each tensor's file.
func (w *WeightSet) readIndex(data []byte) (map[string]string, error) {
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
		return nil, refuse(hint.Unread, "read %s: %v", w.Index, err)
	}
	for name, file := range index.WeightMap {
		index.WeightMap[name] = path.Join(w.survey.Dir, file)
	}
	return index.WeightMap, nil
}

// refuseTwo refuses a source that has two sets of weights.
func refuseTwo(first, second string) error {
	return refuse(hint.TwoSets,
		"the source holds two sets of weights, and programs differ in which they load: %s, and there "+
			"is %s", first, second)
}
