package model

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/reader"
	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// A store holds the files of a model, which are [local] or in a [remote] repo. Several goroutines
// may call all methods except hold and Close at once.
type store interface {
	// OpenFile is Source.OpenFile.
	OpenFile(ctx context.Context, path string) (io.ReadCloser, error)
	// read returns a small file.
	read(ctx context.Context, path string, limit int64) ([]byte, error)
	// hold opens weight files for random reads. A repo's files need no opening, but offline they must
	// be in the shared cache.
	hold(paths []string) error
	// lacks reports whether a file is listed that can't be read, because it's not in that cache.
	lacks(path string) bool
	// stream reads bytes [off, end) of a weight file, in order.
	stream(ctx context.Context, path string, off, end int64) (io.ReadCloser, error)
	// weights returns a reader for several in-order reads at once. It keeps pieces of a repo's file
	// and reads ahead.
	weights(path string) io.ReaderAt
	// sparse returns a reader for small ranges. It fetches exactly those from a repo, and keeps
	// nothing.
	sparse(ctx context.Context, path string) io.ReaderAt
	// held returns a weight file on this machine, or nil if it has to be fetched.
	held(path string) io.ReaderAt
	// unchanged is Source.Unchanged.
	unchanged(path string) error
	// Recheck is Source.Recheck.
	Recheck(ctx context.Context, path string) bool

	// main is Source.Main. It reads a model_index.json of at most limit bytes.
	main(ctx context.Context, limit int64) (plan.Source, error)
	FreeBuffers()
	// Remote reports whether files may have to be fetched from a Hub.
	Remote() bool
	Close() error
}

// files is a store with a list of its files.
type files struct {
	store
	list   []plan.File
	byPath map[string]plan.File
	memory int64 // for headers and small files; 0: no limit
	// files of a local source that can't be read, such as broken links
	unusable []string
	// links has the files that are links to others below the same folder, with the paths of these
	links map[string]string
	// headers of files that are made, by path
	known map[string]*safetensors.Header
}

func newFiles(s store, list []plan.File) (*files, error) {
	if len(list) > plan.MaxFiles {
		return nil, hint.On(fmt.Errorf("it has more than %s files", human.Grouped(plan.MaxFiles)),
			hint.ModelAlone)
	}
	f := &files{store: s, list: list, byPath: make(map[string]plan.File, len(list))}
	left := int64(maxModelBytes)
	for _, x := range list {
		if left -= max(0, x.Size); x.Size > maxModelBytes || left < 0 {
			return nil, fmt.Errorf("the sizes of its files add up to more than an exbibyte (%q has %d bytes), "+
				"which no disk holds", x.Path, x.Size)
		}
		f.byPath[x.Path] = x
	}
	return f, nil
}

// Listing returns all files of the model.
func (f *files) Listing() []plan.File { return slices.Clone(f.list) }

// File returns the file at path.
func (f *files) File(path string) (plan.File, bool) {
	file, ok := f.byPath[path]
	return file, ok
}

// weightsIn returns the safetensors files of a folder, "" for the root, by name. The official
// loader reads exactly these files, whatever an index says (docs/format.md §13).
func (f *files) weightsIn(dir string) []plan.File {
	var weights []plan.File
	for _, file := range f.list {
		if reader.Loads(dir, file.Path) {
			weights = append(weights, file)
		}
	}
	slices.SortFunc(weights, func(a, b plan.File) int { return cmp.Compare(a.Path, b.Path) })
	return weights
}

// maxModelBytes bounds the sizes of a model's files together, so that no sum overflows.
const maxModelBytes = 1 << 60

// Limits for files that are read whole into memory (docs/format.md §16).
const (
	MaxIndexBytes  = 64 << 20
	maxConfigBytes = 8 << 20 // of a config, a model_index, or a card
)

// BaseMemory is what a program needs for all but tables and the buffers of its workers.
const BaseMemory = 44 << 20

// TableMemory returns how much of a memory budget the headers and small files of each model may take
// that is open at the same time. 0 means no budget.
func TableMemory(budget int64, models int64) int64 {
	if budget == 0 {
		return 0
	}
	return max(1, (budget-BaseMemory)/models)
}

// perSmallByte is how much memory a byte of a small file takes at most, once it's decoded.
const perSmallByte = 8

// A MemoryError says that a file is too large for the memory budget.
type MemoryError struct {
	File       string
	Size, Most int64
}

func (e *MemoryError) Error() string {
	return fmt.Sprintf("%s has %d bytes: with this memory budget, at most %d can be read", e.File,
		e.Size, e.Most)
}

// small reads a small file, if the memory budget allows it.
func (f *files) small(ctx context.Context, path string, limit int64) ([]byte, error) {
	size, most := f.byPath[path].Size, f.mostOf(limit)
	if size > most && size <= limit {
		return nil, &MemoryError{path, size, most}
	}
	return f.read(ctx, path, limit)
}

// perFile is how much memory a file of a listing takes at most, with a path of some length: as a
// row of the Hub's answer, as a file, and by its path.
const perFile = 400

// limit sets the memory budget, 0 for none. It refuses a listing that the budget can't hold.
func (f *files) limit(memory int64) error {
	f.memory = memory
	if size := perFile * int64(len(f.list)); memory > 0 && size > memory {
		return &MemoryError{fmt.Sprintf("the list of %s files", human.Grouped(int64(len(f.list)))), size, memory}
	}
	return nil
}

// mostOf returns the size of the largest small file that the memory budget allows, limit at most.
func (f *files) mostOf(limit int64) int64 {
	if f.memory == 0 {
		return limit
	}
	return min(limit, f.memory/perSmallByte)
}

// Main is [Source.Main].
func (f *files) Main(ctx context.Context) (plan.Source, error) {
	return f.main(ctx, f.mostOf(maxConfigBytes))
}

// paths lists the files.
func (f *files) paths() []string {
	paths := make([]string, len(f.list))
	for i, f := range f.list {
		paths[i] = f.Path
	}
	return paths
}

// card returns the model card, or nil if there is none. No reader needs one.
func (f *files) card(ctx context.Context) ([]byte, error) {
	if _, ok := f.File(names.Card); !ok || f.lacks(names.Card) {
		return nil, nil
	}
	return f.small(ctx, names.Card, maxConfigBytes)
}
