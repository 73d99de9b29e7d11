package pipeline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// firstHeaderRead is what the first read of a header asks for; most headers fit.
const firstHeaderRead = 128 << 10

// headersAtOnce is how many headers are read at a time.
const headersAtOnce = 8

// OpenHub reads what a plan needs of a Hub repo: its file list, its small files and its headers.
func OpenHub(ctx context.Context, c *hub.Client, repo, revision string, opt plan.Options) (Source, *Model, error) {
	info, err := c.Info(ctx, repo, revision)
	if err != nil {
		return nil, nil, err
	}
	s := &hubSource{client: c, files: map[string]hub.FileRef{}}
	m := &Model{
		ID: info.ID, Name: path.Base(info.ID), Commit: info.SHA, Private: info.Private, Gated: info.Gated,
		PipelineTag: info.PipelineTag, LibraryName: info.LibraryName,
	}
	var files []plan.File
	for _, f := range info.Files {
		ref := f.Ref(info.ID, info.SHA)
		s.files[f.Path] = ref
		files = append(files, plan.File{Path: f.Path, Size: f.Size, ETag: fileETag(ref)})
	}
	read := func(p string) ([]byte, error) {
		return c.ReadFile(ctx, info.ID, info.SHA, p, maxSmallFileBytes)
	}
	choose := func(ws []plan.File) {
		for _, w := range ws {
			s.refs = append(s.refs, s.files[w.Path])
			m.SHA256 = append(m.SHA256, s.files[w.Path].SHA256)
		}
	}
	if err := describe(ctx, s, m, files, opt, read, choose); err != nil {
		return nil, nil, err
	}
	return s, m, nil
}

// maxSmallFileBytes bounds an index or a config that is read whole: an index of 100,000 tensors has about 10 MB.
const maxSmallFileBytes = 128 << 20

// OpenLocal reads what a plan needs of a folder or of one .safetensors file, which is then the whole source, whatever
// lies beside it. The source is an io.Closer.
func OpenLocal(ctx context.Context, p string, opt plan.Options) (Source, *Model, error) {
	abs, err := filepath.Abs(p)
	if err != nil {
		return nil, nil, err
	}
	st, err := os.Stat(abs)
	if err != nil {
		return nil, nil, err
	}
	dir, deep := abs, true
	if !st.IsDir() {
		if err := plan.CheckFile(filepath.Base(abs), opt); err != nil {
			return nil, nil, err
		}
		dir, opt.WeightFile = filepath.Dir(abs), filepath.Base(abs)
		deep = plan.FamilyOf(opt.WeightFile) != plan.ComfyUI
	}
	files, err := listFolder(dir, deep)
	if err != nil {
		return nil, nil, err
	}
	name := strings.TrimSuffix(filepath.Base(abs), ".safetensors")
	s, m := &localSource{dir: dir}, &Model{ID: name, Name: name, Local: true}
	if !st.IsDir() && filepath.Base(abs) == "model.safetensors" {
		m.ID, m.Name = filepath.Base(dir), filepath.Base(dir)
	}
	read := func(p string) ([]byte, error) { return os.ReadFile(filepath.Join(dir, filepath.FromSlash(p))) }
	var opened error
	choose := func(ws []plan.File) { opened = s.open(ws); m.SHA256 = make([]string, len(ws)) }
	err = describe(ctx, s, m, files, opt, read, choose)
	if err = errors.Join(opened, err); err != nil {
		s.Close()
		return nil, nil, err
	}
	return s, m, nil
}

// open opens the weight files.
func (s *localSource) open(ws []plan.File) error {
	for _, w := range ws {
		f, err := os.Open(filepath.Join(s.dir, filepath.FromSlash(w.Path)))
		if err != nil {
			return err
		}
		s.weights = append(s.weights, f)
	}
	return nil
}

// listFolder lists the files below dir with forward slashes; symbolic links count as what they point to. Hidden folders
// are left out, and without deep all folders.
func listFolder(dir string, deep bool) ([]plan.File, error) {
	var files []plan.File
	dir, err := filepath.EvalSymlinks(dir) // a link to a folder is not walked through
	if err != nil {
		return nil, err
	}
	err = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if rel != "." && (!deep || strings.HasPrefix(d.Name(), ".")) {
				return fs.SkipDir
			}
			return nil
		}
		st, err := os.Stat(p)
		if err != nil || !st.Mode().IsRegular() {
			return err
		}
		files = append(files, plan.File{Path: filepath.ToSlash(rel), Size: st.Size()})
		return nil
	})
	return files, err
}

// describe fills m.Plan: the survey of the names, the small files it asks for, and the headers of the weights. choose is
// told the weight files before their headers are read.
func describe(ctx context.Context, s Source, m *Model, files []plan.File, opt plan.Options, read func(string) ([]byte, error), choose func([]plan.File)) error {
	survey, err := plan.Look(files, opt)
	if err != nil {
		return err
	}
	m.Plan = plan.Source{ID: m.ID, Commit: m.Commit, WeightFile: opt.WeightFile, Files: files}
	for _, small := range []struct {
		path string
		to   *[]byte
	}{{survey.Index, &m.Plan.Index}, {survey.Config, &m.Plan.Config}, {survey.ModelIndex, &m.Plan.ModelIndex}} {
		if small.path == "" {
			continue
		}
		if *small.to, err = read(small.path); err != nil {
			return fmt.Errorf("read %s: %w", small.path, err)
		}
	}
	if err := m.readCard(files, read); err != nil {
		return err
	}
	weights, err := survey.WeightFiles(m.Plan.Index)
	if err != nil {
		return err
	}
	choose(weights)
	m.Plan.Weights, err = readHeaders(ctx, s, weights)
	return err
}

// readCard reads the front matter of the source's model card. A card that is broken is no reason to stop.
func (m *Model) readCard(files []plan.File, read func(string) ([]byte, error)) error {
	if !slices.ContainsFunc(files, func(f plan.File) bool { return f.Path == cardName }) {
		return nil
	}
	b, err := read(cardName)
	if err != nil {
		return fmt.Errorf("read %s: %w", cardName, err)
	}
	if m.Card, err = metadata.ParseFrontMatter(b); err != nil {
		m.Card = nil
	}
	return nil
}

// readHeaders reads the headers of all weight files, several at a time.
func readHeaders(ctx context.Context, s Source, files []plan.File) ([]plan.WeightFile, error) {
	out := make([]plan.WeightFile, len(files))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(headersAtOnce)
	for i, f := range files {
		g.Go(func() error {
			h, err := readHeader(ctx, s, i, f.Size)
			if _, local := s.(localFiles); err != nil && !local && ctx.Err() == nil {
				if d, ok := s.(doubter); ok {
					d.Doubt(ctx, f.Path)
				}
				h, err = readHeader(ctx, s, i, f.Size) // no hash covers a range, so the bytes may have been spoiled on their way
			}
			if err != nil {
				return fmt.Errorf("header of %s: %w", f.Path, err)
			}
			out[i] = plan.WeightFile{File: f, Header: h}
			return nil
		})
	}
	return out, g.Wait()
}

// lfsPointer begins the small text that Git keeps in the place of a large file.
const lfsPointer = "version https://git-lfs.github.com/spec/"

func readHeader(ctx context.Context, s Source, file int, size int64) (*safetensors.Header, error) {
	if size < 8 {
		return nil, fmt.Errorf("the file has %d bytes, which is too short: %w", size, io.ErrUnexpectedEOF)
	}
	first, err := s.ReadRange(ctx, file, 0, min(size, firstHeaderRead))
	if err != nil {
		return nil, err
	}
	if bytes.HasPrefix(first, []byte(lfsPointer)) {
		return nil, &plan.RefusedError{
			Reason: plan.ReasonNoWeights, Detail: "the file is a Git LFS pointer, which stands for weights that were not fetched",
			Hint: "fetch the weights with: git lfs pull",
		}
	}
	n, err := safetensors.HeaderSize(first[:8], size)
	if err != nil {
		return nil, err
	}
	raw := first[8:]
	if int64(len(raw)) < n {
		rest, err := s.ReadRange(ctx, file, int64(len(first)), n-int64(len(raw)))
		if err != nil {
			return nil, err
		}
		raw = append(raw, rest...)
	}
	return safetensors.ParseHeader(raw[:n], size)
}
