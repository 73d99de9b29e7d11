package plan

import (
	"path"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/reader"
)

// A Survey is what the file names of a source show: the folder of its weights, and which small files to
// read before the plan. It never changes.
type Survey struct {
	Layout     catalog.Layout // the source's family: Transformers, Diffusers or ComfyUI
	Dir        string         // folder of the converted weights: "", or the component of a pipeline
	Config     string         // path of the converted model's config.json; "": there is none
	ModelIndex string         // path of a pipeline's model_index.json; "": no pipeline
	// path of the config.json next to it, where DF11 pipelines say what they are; "": there is none
	RootConfig string

	opt   Options
	files []File
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
		return unknown(hint.NoPipeline,
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
	h := hint.NoWeights
	if folders := s.weightFolders(); folders != nil {
		h = hint.NoComponent.With("folders", human.List(human.Near(choices[0], folders)))
	}
	if opt.Component != "" || opt.WeightFile != "" && s.has(opt.WeightFile) == "" {
		return unknown(h, "the pipeline has no folder %s", choices[0])
	}
	return refuse(h, "the pipeline has no folder %s", strings.Join(choices, " or "))
}

// weightFolders lists the folders that hold safetensors files.
func (s *Survey) weightFolders() (dirs []string) {
	for _, f := range s.files {
		dir := path.Dir(f.Path)
		if reader.IsSafetensors(f.Path) && dir != "." && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}
