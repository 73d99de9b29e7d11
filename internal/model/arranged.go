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
// known how its class is arranged there; ok is false if it isn't. Reading weights that aren't on
// this machine fails with ErrRemoteWeights. Licenses and notices come along. Closing the result
// closes src. After an error, src stays open.
func OpenArranged(ctx context.Context, src Source, m *Model, folder string,
	opt plan.Options) (Source, *Model, bool, error) {
	weights, header, list, ok, err := arrange(src, m)
	if err != nil || !ok {
		return nil, nil, ok, err
	}
	one := &Model{ID: m.ID, Name: m.Name, Local: m.Local, Folder: folder, From: m, Arrangement: list,
		Commit: m.Commit, Endpoint: m.Endpoint, Origin: m.Origin,
		Decoded: m.Decoded, readers: new(m.access()), disk: m.disk}
	store := &made{newLocal(""), map[string]*io.SectionReader{}, map[string][]byte{}, nil, func() error {
		var err error
		for i := range m.Listing.Weights {
			err = cmp.Or(err, src.Unchanged(i))
		}
		return err
	}}
	carried, err := plan.Carry(&m.Listing, catalog.Diffusers)
	if err != nil {
		return nil, nil, true, err
	}
	var files []plan.File
	for _, f := range carried.AllCopied() {
		if reader.IsNotice(f.Path) && f.Size <= maxConfigBytes {
			r, err := src.OpenFile(ctx, f.Path)
			if err != nil {
				return nil, nil, true, err
			}
			store.small[f.Path], err = disk.ReadAll(r, maxConfigBytes)
			if err = cmp.Or(err, r.Close()); err != nil {
				return nil, nil, true, err
			}
			files = append(files, f)
		}
	}
	if front, err := m.Card(); err == nil {
		if store.small[names.Card], err = front.LicenseCard(); err != nil {
			return nil, nil, true, err
		}
		files = append(files, plan.File{Path: names.Card, Size: int64(len(store.small[names.Card]))})
	}
	one.made = store.small
	name := m.Name + ".safetensors"
	store.at[name] = weights
	f, err := newFiles(store, append(files, plan.File{Path: name, Size: header.Size()}))
	if err != nil {
		return nil, nil, true, err
	}
	f.known = map[string]*safetensors.Header{name: header}
	f.memory, one.memory, opt.WeightFile = m.memory, m.memory, name
	opt.Component = ""
	out := &source{files: f}
	if err := out.describe(ctx, one, opt); err != nil {
		return nil, nil, true, err
	}
	for _, w := range m.Listing.Weights {
		one.Listing.Of = append(one.Listing.Of, w.Path)
	}
	one.Listing.Behind = behind(carried)
	return &arranged{out, src}, one, true, nil
}

// behind lists the files that readers of a model in diffusers' layout open, and that a file for
// ComfyUI doesn't hold.
func behind(carried plan.Carried) (list []plan.Skipped) {
	for _, f := range carried.AllCopied() {
		if !reader.IsNotice(f.Path) && f.Path != names.Card {
			list = append(list, plan.Skipped{Path: f.Path,
				Why: "a file for ComfyUI holds the weights of the diffusion model alone"})
		}
	}
	return list
}

// arranged is a source made of another one.
type arranged struct {
	*source
	from Source
}

// Main returns what the repo of the files that these are made of has now.
func (a *arranged) Main(ctx context.Context) (plan.Source, error) { return a.from.Main(ctx) }

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

// arrange returns the weights of a model as ComfyUI has them, the header of that file, and what
// each of its tensors is made of.
func arrange(src Source, m *Model) (*io.SectionReader, *safetensors.Header, []catalog.Arranged, bool,
	error) {
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
		return nil, nil, nil, ok, err
	}
	var entries []safetensors.Entry
	pieces := map[string][]catalog.RowRange{}
	for _, a := range list {
		entries = append(entries, safetensors.Entry{Name: a.Name, DType: a.DType, Shape: a.Shape})
		pieces[a.Name] = a.Pieces
	}
	h, err := safetensors.NewHeader(nil, entries)
	if err != nil {
		return nil, nil, nil, true, err
	}
	raw := h.Bytes()
	sections := []*io.SectionReader{io.NewSectionReader(bytes.NewReader(raw), 0, int64(len(raw)))}
	for _, t := range h.ByOffset() {
		for _, p := range pieces[t.Name] {
			from, n := at[p.Tensor.Name], p.Tensor.NBytes()/p.Of
			file := src.Local(from.file)
			if file == nil {
				file = remoteWeights{}
			}
			sections = append(sections, io.NewSectionReader(file, from.begin+(p.Part-1)*n, n))
		}
	}
	return streams.Join(sections...).Section(), h, list, true, nil
}

// remoteWeights are weights that would have to be fetched.
type remoteWeights struct{}

func (remoteWeights) ReadAt([]byte, int64) (int, error) { return 0, ErrRemoteWeights }

// ErrRemoteWeights says that a source can't be read in another order, because its weights would
// have to be fetched.
var ErrRemoteWeights = errors.New("only weights on this machine can be arranged for ComfyUI")
