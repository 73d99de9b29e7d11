package model

import (
	"context"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/reader"
	"github.com/df11-convert/df11-convert/internal/streams"
	"github.com/df11-convert/df11-convert/internal/usage"
)

// source is the Source of files. weights are the paths of its weight files.
type source struct {
	*files
	weights []string
}

func (s *source) Stream(ctx context.Context, file int, off, end int64) (io.ReadCloser, error) {
	return s.stream(ctx, s.weights[file], off, end)
}

func (s *source) ReadRange(ctx context.Context, file int, p []byte, off int64) error {
	return streams.ReadFull(s.sparse(ctx, s.weights[file]), p, off)
}

func (s *source) Local(file int) io.ReaderAt { return s.held(s.weights[file]) }

func (s *source) Carries(p *plan.Plan) error {
	var paths []string
	for _, f := range p.AllCopied() {
		if s.lacks(f.Path) {
			paths = append(paths, f.Path)
		}
	}
	return s.hold(paths) // of a local source, there are none
}

func (s *source) Unchanged(file int) error { return s.unchanged(s.weights[file]) }

// OpenLocal opens a folder or one .safetensors file, and reads its small files and headers. A file
// is the whole source, whatever is next to it, unless it has a name of a library, such as
// model.safetensors or that of its index: then it stands for its folder. Results of conversions
// inside a folder aren't part of the source. memory limits what headers and small files take; 0 is
// no limit.
func OpenLocal(ctx context.Context, name string, opt plan.Options,
	memory int64) (Source, *Model, error) {
	abs, err := filepath.Abs(name)
	if err != nil {
		return nil, nil, err
	}
	st, err := os.Stat(abs)
	if err != nil {
		return nil, nil, err
	}
	base := filepath.Base(abs)
	weights := strings.TrimSuffix(base, ".index.json")
	m, deep := &Model{Name: strings.TrimSuffix(weights, ".safetensors"), Local: true,
		Folder: abs}, true
	if !st.IsDir() {
		if opt.WeightFile != "" {
			return nil, nil, usage.Of(catalog.Refuse(hint.FileAndFlag,
				"--file %s is given, but the source is the file %s", opt.WeightFile, base))
		}
		m.Folder, opt.WeightFile = filepath.Dir(abs), base
		deep = reader.FamilyOf(base) != catalog.ComfyUI
		if weights == names.Weights {
			m.Name = filepath.Base(m.Folder)
		}
	}
	if repo, commit := snapshotOf(m.Folder); m.Name == commit && repo != "" {
		m.Name = path.Base(repo)
	}
	m.ID = m.Name
	enter := func(rel string) bool {
		return deep && !strings.HasPrefix(path.Base(rel), ".") &&
			!isResult(filepath.Join(m.Folder, filepath.FromSlash(rel)))
	}
	// what belongs to the model is known once all files are
	var unusable []string
	f, err := listFolder(m.Folder, enter, func(string) error { return nil },
		func(rel string, _ error) (bool, error) {
			unusable = append(unusable, rel)
			return true, nil
		})
	if err != nil {
		return nil, nil, err
	}
	if !deep && (opt.Layout == "" || opt.Layout == catalog.ComfyUI) {
		f.list = slices.DeleteFunc(f.list, func(f plan.File) bool { return f.Path != base })
		f.byPath = map[string]plan.File{base: f.byPath[base]}
	}
	f.unusable = unusable
	m.disk, _ = f.store.(*local)
	src, m, err := openSource(ctx, f, m, opt, memory)
	if refused, ok := errors.AsType[*plan.RefusedError](err); ok && refused.Folder != "" {
		inside := path.Join(filepath.ToSlash(name), refused.Folder) // as the user wrote it
		refused.Hint = hint.Subfolder.With("folder", inside)
	}
	return src, m, err
}

// openSource makes a source of files and fills in m. On an error it closes the files.
func openSource(ctx context.Context, f *files, m *Model, opt plan.Options,
	memory int64) (Source, *Model, error) {
	s := &source{files: f}
	m.memory = memory
	err := f.limit(memory)
	if err == nil {
		err = s.describe(ctx, m, opt)
	}
	if err != nil {
		if m.card == nil && m.cardKept == "" {
			m.card, _ = s.readIf(ctx, names.Card, maxConfigBytes) // only for the hint
		}
		s.Close()
		return nil, nil, m.Explain(err)
	}
	return s, m, nil
}

// folder finds out which files of a local folder belong to the model.
func (s *source) folder(ctx context.Context, include []string) *reader.Folder {
	return reader.NewFolder(reader.Files{Paths: s.paths(), Links: s.links, Unusable: s.unusable,
		Read: func(name string) []byte {
			b, err := s.small(ctx, name, maxConfigBytes)
			if err != nil {
				return nil // the plan says what's wrong with a config that it needs
			}
			return append([]byte{}, b...) // not nil, even if it's empty
		}}, include)
}

// describe reads the small files that the survey asks for, and the headers of the weights.
func (s *source) describe(ctx context.Context, m *Model, opt plan.Options) error {
	m.Listing = plan.Source{ID: m.ID, Commit: m.Commit, WeightFile: opt.WeightFile,
		Files: slices.DeleteFunc(s.Listing(),
			func(f plan.File) bool { return reader.IsAppleDouble(f.Path) })}
	if m.Local {
		m.Listing.Folder = s.folder(ctx, opt.Include)
	}
	if absent := slices.DeleteFunc(s.paths(), func(p string) bool { return !s.lacks(p) }); len(absent) > 0 {
		folder := s.folder(ctx, opt.Include)
		m.Listing.Absent = slices.DeleteFunc(absent, folder.Opens)
	}
	survey, err := plan.Look(m.Listing.Files, opt)
	if err != nil {
		return err
	}
	m.Listing.Dir = survey.Dir
	for _, small := range []struct {
		path string
		to   *[]byte
	}{
		{survey.Config, &m.Listing.Config}, {survey.ModelIndex, &m.Listing.ModelIndex},
		{survey.RootConfig, &m.Listing.RootConfig},
	} {
		if *small.to, err = s.readIf(ctx, small.path, maxConfigBytes); err != nil {
			return err
		}
	}
	set, err := survey.FindWeights(m.Listing.Config)
	if err != nil {
		return err
	}
	if m.Listing.Index, err = s.readIf(ctx, set.Index, MaxIndexBytes); err != nil {
		return err
	}
	if m.Listing.Folder != nil {
		m.cardKept = m.Listing.Folder.KeepsBack(names.Card)
	}
	if m.cardKept == "" {
		if m.card, err = s.card(ctx); err != nil {
			return err
		}
	}
	weights, err := set.Files(m.Listing.Index)
	if err != nil {
		return err
	}
	for _, w := range weights {
		sum := w.ETag
		if !names.IsSHA256(sum) {
			sum = "" // not published
		}
		s.weights, m.SHA256 = append(s.weights, w.Path), append(m.SHA256, sum)
	}
	if err := s.hold(s.weights); err != nil {
		return err
	}
	m.Listing.Weights, err = s.headers(ctx, weights)
	for i := range m.Listing.Weights {
		if w := &m.Listing.Weights[i]; err == nil && m.Local {
			w.ETag, err = sample(s.held(w.Path), w.Size)
		}
	}
	return err
}

// readIf reads a small file, or returns nil if there is none of that path.
func (s *source) readIf(ctx context.Context, path string, limit int64) ([]byte, error) {
	if _, ok := s.File(path); !ok {
		return nil, nil
	}
	return s.small(ctx, path, limit)
}
