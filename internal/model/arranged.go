package model

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/disk"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/reader"
	"github.com/df11-convert/df11-convert/internal/safetensors"
	"github.com/df11-convert/df11-convert/internal/streams"
)

// OpenArranged opens a model in diffusers' layout as the one file that ComfyUI has of it, if it's
// known how its class is arranged there; ok is false if it isn't. Its weights must be on this
// machine. Licenses and notices come along. Closing the result closes src. After an error, src stays
// open.
func OpenArranged(ctx context.Context, src Source, m *Model, folder string,
	opt plan.Options) (Source, *Model, bool, error) {
	weights, header, ok, err := arrange(src, m)
	if err != nil || !ok {
		return nil, nil, ok, err
	}
	one := &Model{ID: m.ID, Name: m.Name, Local: true, Folder: folder, Arranged: true,
		Decoded: m.Decoded, perm: m.Perm()}
	store := &made{newLocal(""), map[string]*io.SectionReader{}, map[string][]byte{}, nil, func() error {
		var err error
		for i := range m.Listing.Weights {
			err = cmp.Or(err, src.Unchanged(i))
		}
		return err
	}}
	var list []plan.File
	for _, f := range m.Listing.Files {
		if reader.IsNotice(f.Path) && f.Size <= maxConfigBytes {
			r, err := src.OpenFile(ctx, f.Path)
			if err != nil {
				return nil, nil, true, err
			}
			store.small[f.Path], err = disk.ReadAll(r, maxConfigBytes)
			if err = cmp.Or(err, r.Close()); err != nil {
				return nil, nil, true, err
			}
			list = append(list, f)
		}
	}
	if front, err := m.Card(); err == nil {
		if store.small[names.Card], err = front.LicenseCard(); err != nil {
			return nil, nil, true, err
		}
		list = append(list, plan.File{Path: names.Card, Size: int64(len(store.small[names.Card]))})
	}
	name := m.Name + ".safetensors"
	store.at[name] = weights
	f, err := newFiles(store, append(list, plan.File{Path: name, Size: header.Size()}))
	if err != nil {
		return nil, nil, true, err
	}
	f.memory, opt.WeightFile = opt.Memory, name
	out := &source{files: f}
	return &arranged{out, src}, one, true, out.describe(ctx, one, opt)
}

// arranged is a source made of another one.
type arranged struct {
	*source
	from Source
}

func (a *arranged) Close() error { return errors.Join(a.source.Close(), a.from.Close()) }

// Family returns the layout that the name of the first weight file is of.
func (m *Model) Family() catalog.Layout { return reader.FamilyOf(m.Listing.Weights[0].Path) }

// Class returns the class of diffusers that the model's config states, or "".
func (m *Model) Class() string {
	config, err := catalog.ReadConfig(names.Config, m.Listing.Config)
	if err != nil {
		return ""
	}
	return config.ClassName
}

// arrange returns the weights of a model as ComfyUI has them, and the header of that file.
func arrange(src Source, m *Model) (*io.SectionReader, *safetensors.Header, bool, error) {
	type origin struct {
		file  int
		begin int64
	}
	var tensors []safetensors.Tensor
	at := map[string]origin{}
	for i, w := range m.Listing.Weights {
		for _, t := range w.Header.Tensors {
			tensors = append(tensors, t)
			at[t.Name] = origin{i, w.Header.DataStart() + t.Begin}
		}
	}
	list, ok, err := catalog.Arrange(m.Class(), tensors)
	if err != nil || !ok {
		return nil, nil, ok, err
	}
	var entries []safetensors.Entry
	pieces := map[string][]catalog.RowRange{}
	for _, a := range list {
		entries = append(entries, safetensors.Entry{Name: a.Name, DType: a.DType, Shape: a.Shape})
		pieces[a.Name] = a.Pieces
	}
	h, err := safetensors.NewHeader(nil, entries)
	if err != nil {
		return nil, nil, true, err
	}
	raw := h.Bytes()
	sections := []*io.SectionReader{io.NewSectionReader(bytes.NewReader(raw), 0, int64(len(raw)))}
	for _, t := range h.ByOffset() {
		for _, p := range pieces[t.Name] {
			from, n := at[p.Tensor.Name], p.Tensor.NBytes()/p.Of
			file := src.Local(from.file)
			if file == nil {
				return nil, nil, true, ErrRemoteWeights
			}
			sections = append(sections, io.NewSectionReader(file, from.begin+(p.Part-1)*n, n))
		}
	}
	return streams.Join(sections...).Section(), h, true, nil
}

// ErrRemoteWeights says that a source can't be read in another order, because its weights would have
// to be fetched.
var ErrRemoteWeights = errors.New("only weights on this machine can be arranged for ComfyUI")
