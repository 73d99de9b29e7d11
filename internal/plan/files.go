package plan

import (
	"context"
	"path"
	"slices"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/reader"
)

// A placement says which files the output has: those with tensors, and those of the source that
// come along.
type placement struct {
	outputs        []OutputFile // all, units first
	remainder      []OutputFile // the outputs of the remainder; in single layouts the one of everything
	remainderIndex string       // "" if there is one remainder file
	config         string       // the source's config.json, if the dict goes into it
	carried        Carried
	parts          parts
}

// placeFiles puts every tensor into one output file, and sorts the files that aren't converted. It
// refuses names that a repo or a file system may refuse, and files that can't both exist.
func placeFiles(ctx context.Context, r *reading, layout catalog.Layout, v *division,
	notes *Notes) (*placement, error) {
	if ctx.Err() != nil { // the steps before take a while if there are very many tensors
		return nil, context.Cause(ctx)
	}
	f := placeTensors(&r.source, layout, v, notes)
	if err := checkOutputNames(f, layout, v.units); err != nil {
		return nil, err
	}
	for _, w := range r.source.Weights {
		if !names.IsSafe(w.Path) {
			return nil, refuse(hint.Rename,
				"a repo or a file system may refuse the name of the weight file %q", w.Path)
		}
	}
	o, err := r.source.original(layout)
	if err != nil {
		return nil, err
	}
	// the others have their config.json elsewhere, or don't read it
	if layout != catalog.ComfyUI && r.survey.Dir == "" {
		f.config = r.survey.Config
	}
	f.carried = o.carry(&r.source)
	f.parts = judgeParts(o, r.survey, &f.carried, notes)
	if file, why := r.source.kept(); file != "" {
		notes.warn("%s is %s, but no result is without it; --push asks for --include %s", file, why,
			human.ShellWord(reader.Quote(file)))
	}
	return f, f.checkCollisions()
}

// checkCollisions refuses files of the result that collide. Those of two units do, if their paths
// differ only in a dot and an underscore.
func (f *placement) checkCollisions() error {
	paths := []string{names.Config, names.Card, names.Manifest}
	if f.remainderIndex != "" {
		paths = append(paths, f.remainderIndex)
	}
	for _, out := range f.outputs {
		paths = append(paths, out.Path)
	}
	paths = slices.Concat(paths, pathsOf(f.carried.Copied), pathsOf(f.carried.Components))
	if a, b := Collision(paths); a != "" {
		return refuse(hint.NameClash,
			"%s and %s can't both exist (names that differ only in case, or in how an accent is encoded, are "+
				"the same on some file systems)", a, b)
	}
	return nil
}

// Collision returns two of the paths that can't both exist, or "". On file systems that fold
// names, they are the same file, or one is a folder of the other.
func Collision(paths []string) (a, b string) {
	taken := map[string]string{}
	for _, p := range paths {
		key := names.Folded(p)
		if other, ok := taken[key]; ok {
			return other, p
		}
		taken[key] = p
	}
	for _, p := range paths {
		for dir := path.Dir(names.Folded(p)); dir != "."; dir = path.Dir(dir) {
			if file, ok := taken[dir]; ok {
				return file, p
			}
		}
	}
	return "", ""
}
