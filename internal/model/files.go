package model

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path"
	"slices"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
)

// A store holds the files of a model: [local] ones, or those of a [remote] repo. Several goroutines
// may call all methods but hold and Close at once.
type store interface {
	// OpenFile reads a file whole, as Source.OpenFile does.
	OpenFile(ctx context.Context, path string) (io.ReadCloser, error)
	// read reads a small file whole.
	read(ctx context.Context, path string, limit int64) ([]byte, error)
	// hold opens weight files to be read at random. Those of a repo need no opening.
	hold(paths []string) error
	// stream reads bytes [off, end) of a weight file, in order.
	stream(ctx context.Context, path string, off, end int64) (io.ReadCloser, error)
	// weights returns a reader of a file that goes on in order here and there. Pieces of a repo's
	// file are kept and read ahead.
	weights(path string) io.ReaderAt
	// sparse returns a reader of a file for small ranges. Of a repo's file it fetches exactly
	// those, and keeps nothing.
	sparse(ctx context.Context, path string) io.ReaderAt
	// held returns a weight file that need not be fetched; nil if it has to be.
	held(path string) io.ReaderAt
	// unchanged is Source.Unchanged.
	unchanged(path string) error
	// anew makes later reads fetch a file again, not take it from memory or from a damaged copy. It
	// returns false where they would read the same bytes.
	anew(ctx context.Context, path string) bool

	Recheck(ctx context.Context, path string) bool
	Main(ctx context.Context) ([]plan.File, error)
	Tree(ctx context.Context, commit string) (map[string]hub.FileInfo, error)
	FreeBuffers()
	// Remote reports whether files may have to be fetched from a Hub.
	Remote() bool
	Close() error
}

// files are the files of a model in their store.
type files struct {
	store
	list   []plan.File
	byPath map[string]plan.File
}

func newFiles(s store, list []plan.File) (*files, error) {
	if len(list) > plan.MaxFiles {
		return nil, fmt.Errorf("more than %d files", plan.MaxFiles)
	}
	f := &files{s, list, make(map[string]plan.File, len(list))}
	for _, x := range list {
		f.byPath[x.Path] = x
	}
	return f, nil
}

// Listing lists all files of the model.
func (f *files) Listing() []plan.File { return slices.Clone(f.list) }

// File finds a file of the model.
func (f *files) File(path string) (plan.File, bool) {
	file, ok := f.byPath[path]
	return file, ok
}

// weightsIn lists the safetensors files of a folder, "" for the root, by name. The official loader
// reads exactly these files, whatever an index says (docs/format.md §13).
func (f *files) weightsIn(dir string) []plan.File {
	var weights []plan.File
	for _, file := range f.list {
		if plan.IsSafetensors(file.Path) && path.Dir(file.Path) == path.Clean(dir) {
			weights = append(weights, file)
		}
	}
	slices.SortFunc(weights, func(a, b plan.File) int { return cmp.Compare(a.Path, b.Path) })
	return weights
}

// Limits of the files that are read whole into memory (docs/format.md §16).
const (
	MaxIndexBytes  = 64 << 20
	maxConfigBytes = 8 << 20 // of a config, a model_index or a card
)

// card returns the model card and its front matter, which is nil if there is none, or a broken one,
// which is no reason to stop.
func (f *files) card(ctx context.Context) ([]byte, *metadata.FrontMatter, error) {
	if _, ok := f.File(names.Card); !ok {
		return nil, nil, nil
	}
	b, err := f.read(ctx, names.Card, maxConfigBytes)
	if err != nil {
		return nil, nil, err
	}
	front, err := metadata.ParseFrontMatter(b)
	if err != nil {
		front = nil // a broken card is like none
	}
	return b, front, nil
}
