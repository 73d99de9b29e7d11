package model

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strings"

	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/reader"
)

// made is a store with files that are made as they're read, next to those of another store.
type made struct {
	store
	at    map[string]*io.SectionReader // weight files, by path
	small map[string][]byte            // by path
	lost  map[string]bool              // files that the manifest lists and the DF11 model lacks
	// stays returns an error if a file that weights are made from has changed.
	stays func() error
}

func (m *made) OpenFile(ctx context.Context, path string) (io.ReadCloser, error) {
	if b, ok := m.small[path]; ok {
		return io.NopCloser(bytes.NewReader(b)), nil
	}
	if w, ok := m.at[path]; ok {
		return io.NopCloser(io.NewSectionReader(w, 0, w.Size())), nil
	}
	if err := m.hold([]string{path}); err != nil {
		return nil, err
	}
	return m.store.OpenFile(ctx, path)
}

func errLost(path string) error {
	return Invalidf(path, "the manifest lists it, but it's missing")
}

func (m *made) read(ctx context.Context, path string, limit int64) ([]byte, error) {
	if err := m.hold([]string{path}); err != nil {
		return nil, err
	}
	b, ok := m.small[path]
	if ok && int64(len(b)) > limit {
		return nil, fmt.Errorf("%s has %d bytes, more than %d", path, len(b), limit)
	}
	if ok {
		return b, nil
	}
	return m.store.read(ctx, path, limit)
}

func (m *made) hold(paths []string) error {
	for _, path := range paths {
		if m.lost[path] {
			return errLost(path)
		}
	}
	return nil
}

func (m *made) lacks(path string) bool { return m.lost[path] }

func (m *made) stream(_ context.Context, path string, off, end int64) (io.ReadCloser, error) {
	return io.NopCloser(io.NewSectionReader(m.held(path), off, end-off)), nil
}

func (m *made) held(path string) io.ReaderAt {
	if w, ok := m.at[path]; ok {
		return w
	}
	return nil
}

func (m *made) weights(path string) io.ReaderAt { return m.held(path) }

func (m *made) sparse(_ context.Context, path string) io.ReaderAt { return m.held(path) }

func (m *made) unchanged(string) error { return m.stays() }

func (m *made) Recheck(context.Context, string) bool { return false }

// Remote returns false, because the weights are made from files on this machine.
func (m *made) Remote() bool { return false }

// Restored lists the files that a conversion took unchanged from the original of d, and the
// config.json as it was before dfloat11_config went into it. small holds the content of the files
// that aren't the ones of d. Of the card, only the license stays: the rest describes the result.
// The list has the files that the manifest lists and d lacks, too, whose paths are in lost: whoever
// needs one can't go on.
func (d *DF11) Restored(ctx context.Context) (list []plan.File, small map[string][]byte,
	lost map[string]bool, err error) {
	small = map[string][]byte{}
	weights := map[string]bool{}
	for _, w := range d.loaded {
		weights[w.Path] = true
	}
	at := path.Join(d.Dir, names.Config)
	text, err := d.card(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	if front, err := metadata.ParseFrontMatter(text); err == nil {
		if small[names.Card], err = front.LicenseCard(); err != nil {
			return nil, nil, nil, err
		}
		list = append(list, plan.File{Path: names.Card, Size: int64(len(small[names.Card]))})
	}
	for _, f := range d.list {
		switch {
		case weights[f.Path], d.isWritten(f.Path):
		case f.Path != at:
			list = append(list, f)
		default:
			b, err := d.small(ctx, f.Path, maxConfigBytes)
			if err != nil {
				return nil, nil, nil, err
			}
			if b, err = metadata.RemoveConfig(b); err != nil {
				return nil, nil, nil, Invalidf(f.Path, "%v", err)
			}
			if b == nil || d.Dir == "" && d.originalDir() != "" {
				continue // a conversion wrote all of it
			}
			small[f.Path] = b
			list = append(list, plan.File{Path: f.Path, Size: int64(len(b))})
		}
	}
	lost = map[string]bool{}
	for _, o := range d.Manifest.Outputs {
		if _, held := d.File(o.Path); held || d.isWritten(o.Path) || o.Kind.Weights() {
			continue
		}
		if o.Path == at {
			return nil, nil, nil, errLost(at)
		}
		lost[o.Path] = true
		list = append(list, plan.File{Path: o.Path, Size: o.Size})
	}
	return list, small, lost, nil
}

// isWritten reports whether a conversion writes a file itself, or a Hub does.
func (d *DF11) isWritten(name string) bool {
	switch name {
	case names.Card, names.Chart, names.Manifest, names.Attributes:
		return true
	}
	index, isIndex := strings.CutSuffix(name, ".index.json")
	return isIndex && path.Dir(name) == path.Clean(d.Dir) && reader.IsSafetensors(index)
}

// originalDir returns the folder of the original's weights by the manifest, or "".
func (d *DF11) originalDir() string {
	if d.Manifest == nil || len(d.Manifest.Source.Files) == 0 {
		return ""
	}
	return strings.Trim(path.Dir(d.Manifest.Source.Files[0].Path), ".")
}

// OpenRestored opens the original of a DF11 model as a source. Its weight files are read from
// weights, and their published hashes are those of files; its other files are those that d holds or
// its manifest lists.
// Whoever closes the source closes d. On an error, d stays open.
func OpenRestored(ctx context.Context, d *DF11, files []File, weights []*io.SectionReader, index plan.File,
	indexData []byte, opt plan.Options, memory int64) (Source, *Model, error) {
	list, small, lost, err := d.Restored(ctx)
	if err != nil {
		return nil, nil, err
	}
	s := &made{d.store, map[string]*io.SectionReader{}, small, lost, d.Unchanged}
	for i, f := range files {
		s.at[f.Path] = weights[i]
		list = append(list, plan.File{Path: f.Path, Size: f.Size, ETag: f.SHA256})
	}
	if index.Path != "" {
		s.small[index.Path] = indexData
		list = append(list, index)
	}
	f, err := newFiles(s, list)
	if err != nil {
		return nil, nil, err
	}
	folder, err := filepath.Abs(cmp.Or(d.folder, "."))
	if err != nil {
		return nil, nil, err
	}
	name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(d.Name), ".safetensors"), names.ResultEnd)
	f.memory, f.links = memory, d.links
	src, m := &source{files: f}, &Model{ID: name, Name: name, Local: true, Folder: folder,
		Decoded: d.folder != "" && !d.IsFile(), readers: new(d.access()), memory: memory, made: small}
	m.disk, _ = d.store.(*local)
	return src, m, src.describe(ctx, m, opt)
}

// Unchanged returns a ChangedError if a weight file of a local model has changed since it was
// opened.
func (d *DF11) Unchanged() error {
	for _, w := range d.loaded {
		if err := d.unchanged(w.Path); err != nil {
			return err
		}
	}
	return nil
}
