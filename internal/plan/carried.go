package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/reader"
)

// Carried says what a conversion does with the files of an original that it doesn't convert.
type Carried struct {
	Copied []File // copied unchanged
	// copied unchanged, too: weights of other parts, such as a pipeline's components; may be large
	Components []File
	NotCopied  []Skipped // left out
	// of these, what the source's own .gitignore names, though readers open it
	withheld map[string]bool
	// Stay lists the files of a local folder that no reader of the model opens. Their names are
	// private: they belong in no card and no manifest.
	Stay []string
}

// AllCopied lists the files that a result keeps unchanged: small files, and the other components of
// a pipeline.
func (c Carried) AllCopied() []File { return slices.Concat(c.Copied, c.Components) }

// Takes lists the files of the source without weights of the model whose content a result takes,
// whole or in part: the ones it copies, those that describe the model, and the card, whose front
// matter it takes. It's the one list of what is compared with an original, and of what may be
// published.
func (p *Plan) Takes() []File {
	list := p.AllCopied()
	others := append(p.source.describing(), names.Card)
	for _, f := range p.source.Files {
		isTaken := func(of File) bool { return of.Path == f.Path }
		if slices.Contains(others, f.Path) && !slices.ContainsFunc(list, isTaken) {
			list = append(list, f)
		}
	}
	return list
}

// describing lists the small files that say what the model is. A result takes of them what it says
// itself, although it may have no file of that name.
func (s *Source) describing() (paths []string) {
	if s.Config != nil {
		paths = append(paths, path.Join(s.Dir, names.Config))
	}
	if s.ModelIndex != nil {
		paths = append(paths, names.ModelIndex)
	}
	return paths
}

// CheckKept refuses to publish what a local folder keeps back: a file that says what the model is,
// so that there's no result without it.
func (p *Plan) CheckKept() error {
	if file, why := p.source.kept(); file != "" {
		return refuse(hint.Kept.With("file", reader.Quote(file)), "%s is %s, and no result is without it", file, why)
	}
	return nil
}

// kept returns the first file that describes the model although the folder keeps it back, and why.
func (s *Source) kept() (file, why string) {
	for _, file := range s.describing() {
		if s.Folder == nil {
			break
		}
		if why := s.Folder.KeepsBack(file); why != "" {
			return file, why
		}
	}
	return "", ""
}

// An original is a source as readers of the original see it.
type original struct {
	*reader.Original
	parts catalog.Members // the pipeline's other parts, by folder
	own   [2]string       // library and class of the converted part
}

// original returns how readers see the source, whose conversion has a layout.
func (s *Source) original(layout catalog.Layout) (*original, error) {
	var parts catalog.Members
	var err error
	if s.ModelIndex != nil && layout.Family() == catalog.Diffusers {
		if parts, err = catalog.ReadObject(names.ModelIndex, s.ModelIndex); err != nil {
			return nil, err
		}
	}
	o := &original{parts: parts, own: catalog.Decode[[2]string](parts[s.Dir])}
	maps.DeleteFunc(parts, func(part string, _ json.RawMessage) bool {
		return part == s.Dir || strings.HasPrefix(part, "_") || strings.ContainsAny(part, `/\`)
	})
	o.Original = reader.NewOriginal(layout, s.Dir, slices.Collect(maps.Keys(parts)),
		pathsOf(s.Files))
	o.Folder = s.Folder
	return o, nil
}

// Carry says what a conversion into a layout does with the files of a source that it doesn't
// convert. It needs only Files, Dir, ModelIndex, and the paths of Weights of the source. It may
// return a RefusedError.
func Carry(s *Source, layout catalog.Layout) (Carried, error) {
	o, err := s.original(layout)
	if err != nil {
		return Carried{}, err
	}
	return o.carry(s), nil
}

// Twins returns the folders of a pipeline's other parts that have the class of the converted one.
// It needs Dir and ModelIndex of the source.
func Twins(s *Source) (dirs []string) {
	o, err := s.original(catalog.Diffusers)
	if err != nil {
		return nil
	}
	for _, dir := range slices.Sorted(maps.Keys(o.parts)) {
		if o.own[1] != "" && catalog.Decode[[2]string](o.parts[dir]) == o.own {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// carry sorts the files of a source.
func (o *original) carry(s *Source) (c Carried) {
	byPath := func(a, b File) int { return strings.Compare(a.Path, b.Path) }
	converted, absent := map[string]bool{}, map[string]bool{}
	for _, w := range s.Weights {
		converted[w.Path] = true
	}
	for _, p := range s.Absent {
		absent[p] = true
	}
	c.withheld = map[string]bool{}
	for _, f := range slices.SortedFunc(slices.Values(s.Files), byPath) {
		isConfig := f.Path == names.Config && o.Dir == "" && o.Layout != catalog.ComfyUI
		if isConfig || converted[f.Path] {
			continue
		}
		fate, why := o.Fate(f.Path)
		if absent[f.Path] && (fate == reader.Copied || fate == reader.Part) {
			fate, why = reader.Lost, "no reader needs it, and the shared cache lacks it"
		}
		switch fate {
		case reader.Copied:
			c.Copied = append(c.Copied, f)
		case reader.Part:
			c.Components = append(c.Components, f)
		case reader.Stays:
			c.Stay = append(c.Stay, f.Path)
		default:
			c.NotCopied = append(c.NotCopied, Skipped{f.Path, why, fate == reader.Lost})
		}
		if fate == reader.Withheld {
			c.withheld[f.Path] = true
		}
	}
	c.NotCopied = append(c.NotCopied, s.Behind...)
	return c
}

func pathsOf(files []File) []string {
	paths := make([]string, len(files))
	for i, f := range files {
		paths[i] = f.Path
	}
	return paths
}

// parts says what of a pipeline the output has, besides the part that is converted.
type parts struct {
	twin    string // see Notes.Twin
	lacking string // why the pipeline doesn't load with the output; "" if it does
}

// judgeParts warns of what the output lacks although a reader of the source opens it: parts of a
// pipeline without a folder, or without weights that a pipeline loads by default, and single files.
// It also finds a part of the same class as the converted part, such as the second expert of Wan
// 2.2. That part stays BF16, because the official loader takes the units of only one model from a
// repo.
func judgeParts(o *original, s *Survey, c *Carried, notes *Notes) (p parts) {
	lost, left := map[string][]string{}, map[string]bool{}
	for _, f := range c.NotCopied {
		part, isWithheld := o.PartOf(f.Path), c.withheld[f.Path]
		if _, isListed := o.parts[part]; isListed && !isWithheld {
			left[part] = left[part] || f.Lost
		} else if f.Lost || isWithheld {
			lost[f.Why] = append(lost[f.Why], f.Path)
		}
	}
	var lacking []string
	for _, dir := range slices.Sorted(maps.Keys(o.parts)) {
		// a part that the pipeline doesn't use has nulls
		class := catalog.Decode[[2]string](o.parts[dir])
		switch {
		case class[1] == "":
		case left[dir] || !s.hasFolder(dir):
			lacking = append(lacking, dir)
		case class == o.own:
			p.twin = fmt.Sprintf(
				"%s stays BF16, because a DF11 repo holds one compressed part: compress it into another repo "+
					"with --component %s", dir, human.ShellWord(dir))
		}
	}
	if len(lacking) > 0 {
		p.lacking = fmt.Sprintf("the pipeline doesn't load: the source lacks these parts, or doesn't "+
			"have them as safetensors under the usual names: %s", strings.Join(lacking, ", "))
		notes.lack("%s", p.lacking)
	}
	for _, why := range slices.Sorted(maps.Keys(lost)) {
		notes.lack("not carried over: %s (%s)", human.List(lost[why]), why)
	}
	return p
}
