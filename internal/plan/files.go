package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/catalog"
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
}

// sortFiles sorts the files that aren't converted, and decides how config.json is made.
func (r *reading) sortFiles() error {
	// the others have their config.json elsewhere, or don't read it
	if r.Layout != catalog.ComfyUI && r.survey.Dir == "" {
		r.Config = r.survey.Config
	}
	for _, w := range r.source.Weights {
		if !names.IsSafe(w.Path) {
			return refuse(catalog.RenameHint,
				"a repo or a file system may refuse the name of the weight file %q", w.Path)
		}
	}
	parts, err := catalog.ReadObject(r.survey.ModelIndex, r.source.ModelIndex)
	if err != nil {
		return err
	}
	own := catalog.Decode[[2]string](parts[r.survey.Dir])
	maps.DeleteFunc(parts, func(dir string, _ json.RawMessage) bool {
		return dir == r.survey.Dir || strings.HasPrefix(dir, "_") || strings.ContainsAny(dir, `/\`)
	})
	r.original = reader.NewOriginal(r.Layout, r.survey.Dir,
		slices.Collect(maps.Keys(parts)), pathsOf(r.source.Files))
	r.Carried = r.Carry(r.source.Files)
	r.judgeParts(parts, own)
	return r.checkCollisions()
}

func pathsOf(files []File) []string {
	paths := make([]string, len(files))
	for i, f := range files {
		paths[i] = f.Path
	}
	return paths
}

// Carry sorts a list of the original's files, which may be those of another commit.
func (p *Plan) Carry(files []File) (c Carried) {
	byPath := func(a, b File) int { return strings.Compare(a.Path, b.Path) }
	converted := map[string]bool{p.Config: true}
	for _, w := range p.source.Weights {
		converted[w.Path] = true
	}
	for _, f := range slices.SortedFunc(slices.Values(files), byPath) {
		if converted[f.Path] {
			continue
		}
		switch fate, why := p.original.Fate(f.Path); fate {
		case reader.Copied:
			c.Copied = append(c.Copied, f)
		case reader.Part:
			c.Components = append(c.Components, f)
		default:
			c.NotCopied = append(c.NotCopied, Skipped{f.Path, why, fate == reader.Lost})
		}
	}
	return c
}

// judgeParts warns of what the output lacks although a reader of the source opens it: parts of a
// pipeline without a folder, or without weights that a pipeline loads by default, and single files.
// It also notes a part of the same class as the converted part, such as the second expert of Wan
// 2.2. That part stays BF16, because the official loader takes the units of only one model from a
// repo.
func (r *reading) judgeParts(parts catalog.Members, own [2]string) {
	lost, left := map[string][]string{}, map[string]bool{}
	for _, f := range r.NotCopied {
		part := r.original.PartOf(f.Path)
		if _, isListed := parts[part]; isListed {
			left[part] = left[part] || f.Lost
		} else if f.Lost {
			lost[f.Why] = append(lost[f.Why], f.Path)
		}
	}
	var lacking []string
	for _, dir := range slices.Sorted(maps.Keys(parts)) {
		// a part that the pipeline doesn't use has nulls
		class := catalog.Decode[[2]string](parts[dir])
		switch {
		case class[1] == "":
		case left[dir] || !r.survey.hasFolder(dir):
			lacking = append(lacking, dir)
		case class == own:
			r.Twin = fmt.Sprintf(
				"%s stays BF16, because a DF11 repo holds one compressed part: compress it into another repo "+
					"with --component %s", dir, dir)
		}
	}
	if len(lacking) > 0 {
		r.incomplete = fmt.Sprintf("the pipeline doesn't load: the source lacks these parts, or doesn't "+
			"have them as safetensors under the usual names: %s", strings.Join(lacking, ", "))
		r.lack("%s", r.incomplete)
	}
	for _, why := range slices.Sorted(maps.Keys(lost)) {
		r.lack("not carried over: %s (%s)", human.List(lost[why]), why)
	}
}

// checkCollisions refuses files of the result that collide. Two units do if their paths differ only
// in a dot and an underscore.
func (p *Plan) checkCollisions() error {
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
		return refuse("choose other modules with --pattern-dict, or rename one in a copy of the source",
			"%s and %s can't both exist (names that differ only in case are the same on some file systems)", a, b)
	}
	return nil
}
