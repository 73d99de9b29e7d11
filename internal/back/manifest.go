package back

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/progress"
	"github.com/df11-convert/df11-convert/internal/reader"
	"github.com/df11-convert/df11-convert/internal/safetensors"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// A LeftOutError says that the original can't be rebuilt, because the conversion left out some of
// its tensors: it converts one model of a checkpoint that holds several.
type LeftOutError struct {
	Tensors    int
	First      string
	ByManifest bool // only the manifest says so
}

func (e *LeftOutError) Error() string {
	by := ""
	if e.ByManifest {
		by = ", by the manifest"
	}
	return fmt.Sprintf("the original can't be rebuilt: its tensor %s was left out, %d in all%s",
		e.First, e.Tensors, by)
}

// Rebuilder returns the original's weight files, and a Rebuilder that knows where their bytes are.
// It takes both from the plan of the original if there is one, or else from the manifest.
func (p Pair) Rebuilder(workers int, c *progress.Counters) ([]model.File, *Rebuilder, error) {
	if p.Model == nil {
		return ofManifest(p.DF11, workers, c)
	}
	if dropped := p.Plan.Dropped; len(dropped) > 0 {
		return nil, nil, &LeftOutError{len(dropped), dropped[0].Source, false}
	}
	outputs, err := spans.Outputs(p.Plan)
	if err != nil {
		return nil, nil, err
	}
	r, err := NewRebuilder(p.DF11, outputs, p.Model, workers, c)
	return p.Model.Original().Files(), r, err
}

// NotRestored lists the files of the original that decoding doesn't write and the DF11 model doesn't
// hold. It leaves out what no program reads.
func (p Pair) NotRestored() (paths []string) {
	var left []plan.Skipped
	if p.Plan != nil {
		left = p.Plan.NotCopied
	} else if p.DF11.Manifest != nil {
		left = p.DF11.Manifest.NotCopied
	}
	for _, f := range left {
		_, held := p.DF11.File(f.Path)
		isRead := reader.UseOf(f.Path) != reader.Ignores && f.Path != names.Attributes
		if !held && isRead {
			paths = append(paths, f.Path)
		}
	}
	return paths
}

// ErrNoManifest says that a DF11 model can't be decoded without its original.
var ErrNoManifest = errors.New(
	"the model has no manifest, so the headers of the original files are not known")

// ErrNoSum says that a rebuilt file couldn't be checked.
var ErrNoSum = errors.New("the manifest has no sha256 of the original file")

// ofManifest does the work of Rebuilder for an original that only the manifest describes.
func ofManifest(d *model.DF11, workers int,
	c *progress.Counters) ([]model.File, *Rebuilder, error) {
	m := d.Manifest
	if m == nil {
		return nil, nil, ErrNoManifest
	}
	if len(m.Dropped) > 0 {
		return nil, nil, &LeftOutError{len(m.Dropped), m.Dropped[0], true}
	}
	var files []model.File
	var all safetensors.Headers
	in := map[string]string{} // each tensor's file
	for i, f := range m.Source.Files {
		if f.Header == "" {
			return nil, nil, model.Invalidf(names.Manifest, "no header of the original's %q",
				f.Path)
		}
		h, err := all.Parse([]byte(f.Header), f.Size)
		if err != nil {
			return nil, nil, model.Invalidf(names.Manifest, "header of %s: %v", f.Path, err)
		}
		if f.SHA256 == "" {
			return nil, nil, fmt.Errorf("%s: %w", f.Path, ErrNoSum)
		}
		for _, t := range h.Tensors { // no conversion takes an original that has one twice
			if other, ok := in[t.Name]; ok {
				return nil, nil, model.Invalidf(names.Manifest, "it says that %s and %s of the original hold %s",
					other, f.Path, t.Name)
			}
			in[t.Name] = f.Path
		}
		files = append(files,
			model.File{WeightFile: plan.WeightFile{File: plan.File{Path: f.Path, Size: f.Size},
				Header: h}, Index: i, SHA256: f.SHA256})
	}
	if err := checkPaths(files); err != nil { // decode would refuse them
		return nil, nil, model.Invalidf(names.Manifest, "%w", err)
	}
	r := newRebuilder(d, workers, c)
	r.byManifest = true
	return files, r, r.placeByManifest(m, files)
}

// IsOfOther reports whether the manifest has another SHA-256 for a file of the original: the model
// was made from another one.
func (p Pair) IsOfOther() bool {
	if p.DF11.Manifest == nil {
		return false
	}
	for _, w := range p.Model.Original().Files() {
		for _, f := range p.DF11.Manifest.Source.Files {
			if f.Path == w.Path && w.SHA256 != "" && f.SHA256 != "" && f.SHA256 != w.SHA256 {
				return true
			}
		}
	}
	return false
}

// placeByManifest finds the locations of the original files' tensors if only the manifest is known.
func (r *Rebuilder) placeByManifest(m *metadata.Manifest, files []model.File) error {
	list, err := arrangementOf(m, files)
	if err != nil {
		return err
	}
	stored := map[string]string{} // source name → output name, where they differ
	for _, x := range m.Renamed {
		stored[x.Source] = x.Name
	}
	for _, a := range m.Aliases {
		stored[a.Name] = a.Of
	}
	inUnits := unitPlaces(m)
	locate := func(source string, dtype safetensors.DType) {
		name := cmp.Or(stored[source], source)
		pieces := inUnits[name]
		s, plain := r.model.Tensor(name)
		widen := dtype == safetensors.F32 && (pieces != nil || plain && s.DType == safetensors.BF16)
		if pieces == nil {
			pieces = []place{{name: name}}
		}
		for i := range pieces {
			pieces[i].widen = widen
		}
		r.places[source] = pieces
	}
	for _, a := range list {
		locate(a.Name, a.DType)
	}
	if list != nil {
		return r.takeApart(list)
	}
	for _, f := range files {
		for _, t := range f.Header.Tensors {
			locate(t.Name, t.DType)
		}
	}
	return nil
}

// unitPlaces returns the locations of all weights in units, by output name. Slices are under the name
// of their parameter, by the row at which they begin.
func unitPlaces(m *metadata.Manifest) map[string][]place {
	places := map[string][]place{}
	for _, x := range m.Units {
		u := &spans.Unit{Unit: plan.Unit{Path: x.Path}}
		var elem int64
		for _, t := range x.Tensors {
			attr := plan.Tensor{Name: t.Name, Shape: t.Shape}
			p := place{unit: u, elem: elem, name: t.Name, nElems: attr.NElems()}
			if t.SliceOf != "" {
				// rows sort as bytes do, and if they're wrong, the hash shows it
				p.offset, _ = strconv.ParseInt(catalog.Leaf(t.Name), 10, 64)
			}
			name := cmp.Or(t.SliceOf, t.Name)
			places[name] = append(places[name], p)
			u.Attrs = append(u.Attrs, attr)
			elem += attr.NElems()
		}
	}
	for _, pieces := range places {
		slices.SortFunc(pieces, func(a, b place) int { return cmp.Compare(a.offset, b.offset) })
	}
	return places
}
