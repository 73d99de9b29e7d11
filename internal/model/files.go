package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/smallfile"
)

// files are the files of a model: those below a folder, or those of a repo at one commit.
type files struct {
	dir    string               // "" for a repo
	client *hub.Client          // nil for a folder
	refs   []hub.FileRef        // for a folder without repo and hashes
	opened map[string]localFile // by path
	pieces *Readers             // for weights of a repo; nil if only single ranges are fetched

	index  sync.Once
	byPath map[string]hub.FileRef // refs, once one was looked up
}

// Exists reports whether a path names a local file or folder.
func Exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// listFolder lists the files below dir with forward slashes; symbolic links to files count as what
// they point to. It leaves out the folders for which enter, given the path from dir, returns false.
// It calls linked for a link to a folder, which it does not follow.
func listFolder(dir string, enter func(rel string) bool,
	linked func(rel string) error) (*files, error) {
	root, err := filepath.EvalSymlinks(dir) // WalkDir does not follow a link to a folder
	if err != nil {
		return nil, err
	}
	f := &files{dir: dir}
	err = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			if p != root && !enter(rel) {
				return fs.SkipDir
			}
			return nil
		}
		st, err := os.Stat(p)
		if err != nil {
			return err
		}
		if st.IsDir() {
			return linked(rel)
		}
		if err := smallfile.Regular(p, st.Mode()); err != nil {
			return err
		}
		f.refs = append(f.refs, hub.FileRef{Path: rel, Size: st.Size()})
		return f.checkCount()
	})
	return f, err
}

// isResult reports whether a folder holds a conversion, finished or in the making. Inside a source,
// such a folder is no part of the source: otherwise a conversion would change its own source.
func isResult(dir string) bool {
	return Exists(filepath.Join(dir, metadata.ManifestName)) ||
		Exists(filepath.Join(dir, metadata.StateDir))
}

func listRepo(c *hub.Client, info *hub.RepoInfo) (*files, error) {
	f := &files{client: c}
	for _, x := range info.Files {
		f.refs = append(f.refs, x.Ref(info.ID, info.SHA))
	}
	return f, f.checkCount()
}

// checkCount refuses more files than a model can have.
func (f *files) checkCount() error {
	if len(f.refs) > plan.MaxFiles {
		return fmt.Errorf("more than %d files", plan.MaxFiles)
	}
	return nil
}

// Listing lists all files of the model.
func (f *files) Listing() []plan.File {
	var list []plan.File
	for _, ref := range f.refs {
		list = append(list, planFile(ref))
	}
	return list
}

// planFile describes a file to a plan. A hash pins its content where there is one.
func planFile(ref hub.FileRef) plan.File {
	return plan.File{Path: ref.Path, Size: ref.Size, ETag: cmp.Or(ref.SHA256, ref.BlobID)}
}

// find looks up a file by its path.
func (f *files) find(path string) (hub.FileRef, bool) {
	f.index.Do(func() {
		f.byPath = make(map[string]hub.FileRef, len(f.refs))
		for _, ref := range f.refs {
			f.byPath[ref.Path] = ref
		}
	})
	ref, ok := f.byPath[path]
	return ref, ok
}

// weightsIn lists the safetensors files of a folder, "" for the root, by name. The official loader
// reads exactly these files, whatever an index says (docs/format.md §13).
func (f *files) weightsIn(dir string) []hub.FileRef {
	var weights []hub.FileRef
	for _, ref := range f.refs {
		if plan.IsSafetensors(ref.Path) && path.Dir(ref.Path) == path.Clean(dir) {
			weights = append(weights, ref)
		}
	}
	slices.SortFunc(weights, func(a, b hub.FileRef) int { return cmp.Compare(a.Path, b.Path) })
	return weights
}

// diskPath returns where a file of a folder lies on this machine.
func (f *files) diskPath(path string) string {
	return filepath.Join(f.dir, filepath.FromSlash(path))
}

// Limits of the files that are read whole into memory (docs/format.md §16).
const (
	MaxIndexBytes  = 64 << 20
	maxConfigBytes = 8 << 20 // of a config, a model_index or a card
)

// read reads a small file whole.
func (f *files) read(ctx context.Context, ref hub.FileRef, limit int64) ([]byte, error) {
	if f.client == nil {
		return smallfile.Read(f.diskPath(ref.Path), limit)
	}
	return f.client.ReadFile(ctx, ref, limit)
}

// card returns the model card and its front matter, which is nil if there is none, or a broken one,
// which is no reason to stop.
func (f *files) card(ctx context.Context) ([]byte, *metadata.FrontMatter, error) {
	ref, ok := f.find(CardName)
	if !ok {
		return nil, nil, nil
	}
	b, err := f.read(ctx, ref, maxConfigBytes)
	if err != nil {
		return nil, nil, err
	}
	front, err := metadata.ParseFrontMatter(b)
	if err != nil {
		front = nil // a broken card is like none
	}
	return b, front, nil
}

// OpenFile reads a file whole, as Source.OpenFile does.
func (f *files) OpenFile(ctx context.Context, path string) (io.ReadCloser, error) {
	if f.client == nil {
		return smallfile.Open(f.diskPath(path))
	}
	ref, ok := f.find(path)
	if !ok {
		return nil, fmt.Errorf("%s: no such file in the repo: %w", path, os.ErrNotExist)
	}
	return checkedFile(ctx, f.client, ref)
}

// localFile is an open file of a folder, with its size and time when it was opened.
type localFile struct {
	*os.File
	then fs.FileInfo
}

// open opens files of a folder for reading at random.
func (f *files) open(refs []hub.FileRef) error {
	if f.dir == "" {
		return nil
	}
	for _, ref := range refs {
		if err := f.openAt(ref.Path, f.diskPath(ref.Path)); err != nil {
			return err
		}
	}
	return nil
}

// openAt opens the file of a path, which lies at another one on this machine.
func (f *files) openAt(path, onDisk string) error {
	file, err := smallfile.Open(onDisk)
	if err != nil {
		return err
	}
	then, err := file.Stat()
	if f.opened == nil {
		f.opened = map[string]localFile{}
	}
	f.opened[path] = localFile{file, then}
	return err
}

// weights returns a reader of a file that goes on in order here and there. Pieces of a repo's file
// are kept and read ahead.
func (f *files) weights(path string) io.ReaderAt {
	if file, ok := f.opened[path]; ok {
		return file
	}
	ref, _ := f.find(path)
	return f.pieces.Open(ref)
}

// sparse returns a reader of a file for small ranges. Of a repo's file it fetches exactly those,
// and keeps nothing.
func (f *files) sparse(ctx context.Context, path string) io.ReaderAt {
	if file, ok := f.opened[path]; ok {
		return file
	}
	ref, _ := f.find(path)
	return rangeReader{ctx, f.client, ref}
}

// rangeReader reads a file of a repo without keeping anything.
type rangeReader struct {
	ctx    context.Context //nolint:containedctx // io.ReaderAt has no room for one
	client *hub.Client
	ref    hub.FileRef
}

func (r rangeReader) ReadAt(p []byte, off int64) (int, error) {
	n := min(int64(len(p)), r.ref.Size-off)
	if n <= 0 {
		return 0, io.EOF
	}
	b, err := r.client.ReadRange(r.ctx, r.ref, off, n)
	if err == nil && int(n) < len(p) {
		err = io.EOF
	}
	return copy(p, b), err
}

// Recheck checks the shared cache's copy of a file, as Source.Recheck does.
func (f *files) Recheck(ctx context.Context, path string) bool {
	ref, ok := f.find(path)
	if !ok || f.client == nil {
		return false
	}
	return f.client.CheckCached(ctx, ref)
}

// Hub returns the client that reads the files; nil for a folder.
func (f *files) Hub() *hub.Client { return f.client }

// Close releases the files. Their readers must not be used any more.
func (f *files) Close() error {
	var errs []error
	for _, file := range f.opened {
		errs = append(errs, file.Close())
	}
	if f.pieces != nil {
		errs = append(errs, f.pieces.Close())
	}
	return errors.Join(errs...)
}
