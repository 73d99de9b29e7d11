package proof

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/safetensors"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// LeftOutError says that the original can't be rebuilt, since the model was made of a part of it: the other tensors of a
// checkpoint that holds several models were left out on purpose.
type LeftOutError struct {
	Tensors int
	First   string
}

func (e *LeftOutError) Error() string {
	if e.Tensors == 1 {
		return fmt.Sprintf("the original cannot be rebuilt: its tensor %s was left out", e.First)
	}
	return fmt.Sprintf("the original cannot be rebuilt: %d of its tensors were left out, such as %s", e.Tensors, e.First)
}

// CheckKept is a LeftOutError for a plan that leaves tensors out.
func CheckKept(p *plan.Plan) error {
	if len(p.Dropped) == 0 {
		return nil
	}
	return &LeftOutError{len(p.Dropped), p.Dropped[0].Source}
}

// ErrNoManifest says that a DF11 model can't be decoded by itself.
var ErrNoManifest = errors.New("the model has no manifest, so the headers of the original files are not known")

// OriginalOfManifest is the original of a DF11 model as far as the manifest describes it: the headers and sums of its weight
// files, with a Rebuilder that knows where their bytes are.
func OriginalOfManifest(d *model.DF11, workers int) (*model.Model, *Rebuilder, error) {
	m := d.Manifest
	if m == nil {
		return nil, nil, ErrNoManifest
	}
	if len(m.Dropped) > 0 {
		return nil, nil, &LeftOutError{len(m.Dropped), m.Dropped[0]}
	}
	original, all := &model.Model{}, safetensors.Headers{}
	for _, f := range m.Source.Files {
		if f.Header == "" {
			return nil, nil, model.Invalidf(metadata.ManifestName, "no header of the original's %q", f.Path)
		}
		h, err := all.Parse([]byte(f.Header), f.Size)
		if err != nil {
			return nil, nil, model.Invalidf(metadata.ManifestName, "header of %s: %v", f.Path, err)
		}
		w := plan.WeightFile{File: plan.File{Path: f.Path, Size: f.Size}, Header: h}
		original.Listing.Weights, original.SHA256 = append(original.Listing.Weights, w), append(original.SHA256, f.SHA256)
	}
	r := NewRebuilder(d, nil, workers)
	r.placeByManifest(m, original.Listing.Weights)
	return original, r, nil
}

// misdescribed names a file or a module of the original that the manifest describes otherwise than it is; "" if there is none. Its
// weights may be right all the same: they were compared with the original, while decode by itself rests on the manifest.
func misdescribed(d *model.DF11, original *model.Model, p *plan.Plan) string {
	m := d.Manifest
	if m == nil {
		return ""
	}
	for i, w := range original.Listing.Weights {
		for _, f := range m.Source.Files {
			other := f.Size != w.Size || f.Header != string(w.Header.Raw) || otherSum(f, original.SHA256[i])
			if f.Path == w.Path && other {
				return w.Path
			}
		}
	}
	listed := map[string][]metadata.UnitTensor{}
	for _, u := range m.Units {
		listed[u.Path] = u.Tensors
	}
	same := func(a metadata.UnitTensor, b plan.Tensor) bool {
		return a.Name == b.Name && slices.Equal(a.Shape, b.Shape)
	}
	for _, u := range p.Units {
		if d.Coded(u.Path) && !slices.EqualFunc(listed[u.Path], u.Attrs, same) {
			return "module " + u.Path
		}
	}
	return ""
}

// placeByManifest finds the places of the original files' tensors by the manifest alone.
func (r *Rebuilder) placeByManifest(m *metadata.Manifest, files []plan.WeightFile) {
	stored := map[string]string{} // source name → output name, where they differ
	for _, x := range m.Renamed {
		stored[x.Source] = x.Name
	}
	for _, a := range m.Aliases {
		stored[a.Name] = a.Of
	}
	inUnits := unitPlaces(m)
	for _, f := range files {
		for _, t := range f.Header.Tensors {
			name := cmp.Or(stored[t.Name], t.Name)
			p, inUnit := inUnits[name]
			s, plain := r.model.Tensor(name)
			p.name = name
			p.widen = t.DType == safetensors.F32 && (inUnit || plain && s.DType == safetensors.BF16)
			r.places[t.Name] = p
		}
	}
}

// unitPlaces gives the places of all weights in units, by output name.
func unitPlaces(m *metadata.Manifest) map[string]place {
	places := map[string]place{}
	for _, x := range m.Units {
		u := &spans.Unit{Unit: plan.Unit{Path: x.Path}}
		var elem int64
		for _, t := range x.Tensors {
			places[t.Name] = place{unit: u, elem: elem, name: t.Name}
			attr := plan.Tensor{Name: t.Name, Shape: t.Shape}
			u.Attrs = append(u.Attrs, attr)
			elem += attr.NElems()
		}
	}
	return places
}
