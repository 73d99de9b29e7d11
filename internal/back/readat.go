package back

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/streams"
	"github.com/df11-convert/df11-convert/verify"
)

// ReaderAt returns a reader of an original file, which decodes what is read. It checks no hash.
// Goroutines may share it, while the Rebuilder's model is open.
func (r *Rebuilder) ReaderAt(f model.File) (*io.SectionReader, error) {
	header := f.Header.Bytes()
	sections := []*io.SectionReader{io.NewSectionReader(bytes.NewReader(header), 0, int64(len(header)))}
	for _, t := range f.Header.ByOffset() {
		places, ok := r.places[t.Name]
		if !ok {
			return nil, model.Invalidf("", "%s: tensor %s has no place in the model", f.Path, t.Name)
		}
		var size int64
		for _, p := range places {
			s, err := r.section(p)
			if err != nil {
				return nil, err
			}
			size += s.Size()
			sections = append(sections, s)
		}
		if size != t.NBytes() {
			return nil, model.Invalidf("", "%s: tensor %s has another size in the model", f.Path, t.Name)
		}
	}
	return streams.Join(sections...).Section(), nil
}

// section returns the bytes of a tensor of the original, or of a slice of one.
func (r *Rebuilder) section(p place) (*io.SectionReader, error) {
	var s *io.SectionReader
	if r.decodes(p) {
		s = io.NewSectionReader(&weights{r.opened, p}, 0, 2*p.nElems)
	} else {
		var err error
		if s, err = r.stored(p); err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
	}
	if p.widen {
		s = io.NewSectionReader(&wide{s}, 0, 2*s.Size())
	}
	return s, nil
}

// stored returns the bytes of a place that isn't coded.
func (r *Rebuilder) stored(p place) (*io.SectionReader, error) {
	s, ok := r.model.Section(p.name)
	switch {
	case !ok:
		return nil, model.Invalidf("", "the DF11 model doesn't have it")
	case !p.part:
		return s, nil
	case p.from+p.size > s.Size():
		return nil, model.Invalidf("", "it's too short in the DF11 model")
	}
	return io.NewSectionReader(s, p.from, p.size), nil
}

// weights reads the weights of a place in a coded unit, as BF16.
type weights struct {
	units *openUnits
	place
}

func (w *weights) ReadAt(p []byte, off int64) (int, error) {
	u, err := w.units.open(w.unit)
	if err != nil {
		return 0, fmt.Errorf("module %s: %w", w.unit.Path, err)
	}
	first, end := off/2, (off+int64(len(p))+1)/2
	to := p
	if off%2 != 0 || len(p)%2 != 0 {
		to = make([]byte, 2*(end-first))
	}
	// a reader has no context, and decodes little at a time
	if err := u.DecodeRange(context.Background(), w.elem+first, end-first, to); err != nil {
		return 0, fmt.Errorf("module %s: %w", w.unit.Path, err)
	}
	if len(to) != len(p) || off%2 != 0 {
		copy(p, to[off%2:])
	}
	return len(p), nil
}

// wide reads BF16 values as F32, as they were before they were narrowed.
type wide struct{ *io.SectionReader }

func (w *wide) ReadAt(p []byte, off int64) (int, error) {
	first, end := off/4, (off+int64(len(p))+3)/4
	b := make([]byte, 2*(end-first))
	if err := streams.ReadFull(w.SectionReader, b, 2*first); err != nil {
		return 0, err
	}
	var out bytes.Buffer
	if _, err := (&widener{w: &out}).Write(b); err != nil {
		return 0, err
	}
	return copy(p, out.Bytes()[off%4:]), nil
}

// maxOpenUnits bounds how many units of a model are open at once for a file, or for all readers: each
// takes its tables.
const maxOpenUnits = 64

// openUnits are the open units of a model, most of them at once. Goroutines may share them.
type openUnits struct {
	model *model.DF11
	most  int
	mutex sync.Mutex
	units map[string]*verify.Unit // by path
}

func newOpenUnits(d *model.DF11, most int) *openUnits {
	return &openUnits{model: d, most: most, units: map[string]*verify.Unit{}}
}

func (o *openUnits) open(u *spans.Unit) (*verify.Unit, error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if opened, ok := o.units[u.Path]; ok {
		return opened, nil
	}
	if len(o.units) >= o.most {
		clear(o.units)
	}
	opened, err := o.model.OpenUnit(u)
	if err == nil {
		o.units[u.Path] = opened
	}
	return opened, err
}
