package back

import (
	"cmp"
	"slices"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// A file for ComfyUI that is made of diffusers' files holds their tensors under other names, and
// some joined. The original is what it was made of, so that is what comes back, and what is
// compared.

// takeApart turns the places of the tensors of an arrangement into those of the tensors that it is
// made of.
func (r *Rebuilder) takeApart(list []catalog.Arranged) error {
	type piece struct {
		part int64
		place
	}
	pieces := map[string][]piece{}
	for _, a := range list {
		whole := r.places[a.Name]
		if len(whole) != 1 {
			return model.Invalidf("", "%s has %d places in the DF11 model, not one", a.Name, len(whole))
		}
		var at int64
		for _, p := range a.Pieces {
			n := p.Tensor.NBytes() / p.Of
			pieces[p.Tensor.Name] = append(pieces[p.Tensor.Name], piece{p.Part, whole[0].cut(at, n)})
			at += n
		}
	}
	r.places = make(map[string][]place, len(pieces))
	for name, of := range pieces {
		slices.SortFunc(of, func(a, b piece) int { return cmp.Compare(a.part, b.part) })
		for _, p := range of {
			r.places[name] = append(r.places[name], p.place)
		}
	}
	return nil
}

// cut returns the place of n bytes of an original tensor, from the byte at on.
func (p place) cut(at, n int64) place {
	if p.widen {
		at, n = at/2, n/2
	}
	p.part, p.from, p.size = true, at, n
	p.elem, p.nElems = p.elem+at/2, n/2
	return p
}

// arrangementOf returns what the tensors of the outputs are made of by the manifest, or nil if
// they're the tensors of the source's files.
func arrangementOf(m *metadata.Manifest, files []model.File) ([]catalog.Arranged, error) {
	if m.Source.Arranged == "" {
		return nil, nil
	}
	var tensors []safetensors.Tensor
	for _, f := range files {
		tensors = append(tensors, f.Header.Tensors...)
	}
	list, ok, err := catalog.Arrange(m.Source.Arranged, tensors)
	if err == nil && !ok {
		return nil, model.Invalidf(names.Manifest, "it isn't known how ComfyUI's files arrange the "+
			"tensors of %q", m.Source.Arranged)
	}
	if err != nil {
		return nil, model.Invalidf(names.Manifest, "%v", err)
	}
	return list, nil
}
