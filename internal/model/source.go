package model

import (
	"context"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/streams"
)

// source is a Source of a folder or a repo.
type source struct {
	*files
	weights []hub.FileRef
	filling []sync.Mutex // one for each weight file that is brought into the shared cache; nil if none is
}

// Stream brings a file that is to be kept into the shared cache first, whole and with its hash checked, unless a copy is there.
func (s *source) Stream(ctx context.Context, file int, off, end int64) (io.ReadCloser, error) {
	ref := s.weights[file]
	if s.client == nil {
		return io.NopCloser(io.NewSectionReader(s.Local(file), off, end-off)), nil
	}
	if s.filling != nil {
		s.filling[file].Lock()
		defer s.filling[file].Unlock()
		if err := s.keep(ctx, ref); err != nil {
			return nil, err
		}
	}
	return s.client.Stream(ctx, ref, off, end)
}

func (s *source) ReadRange(ctx context.Context, file int, off, n int64) ([]byte, error) {
	if s.client != nil {
		return s.client.ReadRange(ctx, s.weights[file], off, n)
	}
	b := make([]byte, n)
	return b, streams.ReadFull(s.Local(file), b, off)
}

func (s *source) Local(file int) io.ReaderAt {
	if s.client != nil {
		return nil
	}
	return s.readers[s.weights[file].Path]
}

// Unchanged looks at the open file: one that has got another file's name since is still what it was.
func (s *source) Unchanged(file int) error {
	if s.client != nil {
		return nil
	}
	name := s.weights[file].Path
	now, err := s.readers[name].(*os.File).Stat()
	if err != nil {
		return err
	}
	if then := s.opened[name]; now.Size() != then.Size() || !now.ModTime().Equal(then.ModTime()) {
		return &ChangedError{name}
	}
	return nil
}

// OpenHub finds the commit of a revision, "" for main, and is OpenCommit for that.
func OpenHub(ctx context.Context, c *hub.Client, repo, revision string, opt plan.Options) (Source, *Model, error) {
	info, err := c.Info(ctx, repo, revision)
	if err != nil {
		return nil, nil, err
	}
	return OpenCommit(ctx, c, info, opt)
}

// OpenCommit reads what a plan needs of a commit of a Hub repo: its small files and its headers.
func OpenCommit(ctx context.Context, c *hub.Client, info *hub.RepoInfo, opt plan.Options) (Source, *Model, error) {
	m := &Model{
		ID: info.ID, Name: path.Base(info.ID), Commit: info.SHA, Private: info.Private, Gated: info.Gated,
		PipelineTag: info.PipelineTag, LibraryName: info.LibraryName,
	}
	f, err := listRepo(c, info)
	if err != nil {
		return nil, nil, err
	}
	return openSource(ctx, f, m, opt)
}

// OpenLocal reads what a plan needs of a folder or of one .safetensors file, which is then the whole source, whatever
// lies beside it. Folders of conversions inside the folder are no part of it.
func OpenLocal(ctx context.Context, name string, opt plan.Options) (Source, *Model, error) {
	abs, err := filepath.Abs(name)
	if err != nil {
		return nil, nil, err
	}
	st, err := os.Stat(abs)
	if err != nil {
		return nil, nil, err
	}
	base := filepath.Base(abs)
	m, deep := &Model{Name: strings.TrimSuffix(base, ".safetensors"), Local: true, Folder: abs}, true
	if !st.IsDir() {
		if err := plan.CheckFile(base, opt); err != nil {
			return nil, nil, err
		}
		m.Folder, opt.WeightFile = filepath.Dir(abs), base
		deep = plan.FamilyOf(base) != plan.ComfyUI
		if base == "model.safetensors" {
			m.Name = filepath.Base(m.Folder)
		}
	}
	m.ID = m.Name
	m.traceCache()
	f, err := listFolder(m.Folder, func(dir string) bool { return deep && !isResult(dir) })
	if err != nil {
		return nil, nil, err
	}
	return openSource(ctx, f, m, opt)
}

// openSource makes a source of files, and completes m by what they say. On an error it closes the files.
func openSource(ctx context.Context, f *files, m *Model, opt plan.Options) (Source, *Model, error) {
	s := &source{files: f}
	if err := s.describe(ctx, m, opt); err != nil {
		s.Close()
		return nil, nil, err
	}
	return s, m, nil
}

// describe reads what a plan is made from: the small files that the names of all files lead to, and the headers of the
// weights.
func (s *source) describe(ctx context.Context, m *Model, opt plan.Options) error {
	m.Listing = plan.Source{ID: m.ID, Commit: m.Commit, WeightFile: opt.WeightFile, Files: s.listing()}
	survey, err := plan.Look(m.Listing.Files, opt)
	if err != nil {
		return err
	}
	for _, small := range []struct {
		path  string
		limit int64
		to    *[]byte
	}{
		{survey.Index, MaxIndexBytes, &m.Listing.Index}, {survey.Config, maxConfigBytes, &m.Listing.Config},
		{survey.ModelIndex, maxConfigBytes, &m.Listing.ModelIndex},
	} {
		ref, ok := s.find(small.path)
		if !ok {
			continue
		}
		if *small.to, err = s.read(ctx, ref, small.limit); err != nil {
			return err
		}
	}
	if m.Card, err = s.card(ctx); err != nil {
		return err
	}
	weights, err := survey.WeightFiles(m.Listing.Index)
	if err != nil {
		return err
	}
	for _, w := range weights {
		ref, _ := s.find(w.Path)
		s.weights, m.SHA256 = append(s.weights, ref), append(m.SHA256, ref.SHA256)
	}
	if err := s.open(ctx, s.weights); err != nil {
		return err
	}
	if m.Local && m.Lineage.Repo == "" {
		m.Lineage.Commit = downloadedCommit(m.Folder, s.weights)
	}
	m.Listing.Weights, err = s.headers(ctx, s.weights)
	return err
}

// KeepWeights makes a Hub source store its weight files in the shared cache, where other programs find them. A source of
// another kind is returned as it is.
func KeepWeights(s Source) Source {
	remote, ok := s.(*source)
	if !ok || remote.client == nil {
		return s
	}
	return &source{files: remote.files, weights: remote.weights, filling: make([]sync.Mutex, len(remote.weights))}
}

// keep makes sure that the shared cache has a file. An error of the cache itself is a CacheError.
func (s *source) keep(ctx context.Context, ref hub.FileRef) error {
	if _, ok := s.client.CachedPath(ref); ok {
		return nil
	}
	err := fillCache(ctx, s.client, ref)
	if remote := (*hub.Error)(nil); err != nil && !errors.As(err, &remote) {
		return &CacheError{err}
	}
	return err
}

// fillCache downloads one file, or what an earlier run has left of it.
func fillCache(ctx context.Context, c *hub.Client, ref hub.FileRef) error {
	w, err := c.CacheCreate(ctx, ref)
	if err != nil {
		return err
	}
	defer w.Cleanup()
	r, err := c.Stream(ctx, ref, w.Offset(), ref.Size)
	if err != nil {
		return err
	}
	defer r.Close()
	if _, err := streams.Copy(ctx, w, r); err != nil {
		return err
	}
	return w.Commit()
}
