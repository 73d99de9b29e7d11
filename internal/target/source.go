package target

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/df11-convert/df11-convert/internal/plan"
)

// SourceTargetError says that the result would take the place of its source.
type SourceTargetError struct{ Target string }

func (e *SourceTargetError) Error() string {
	return fmt.Sprintf("%s is the source's own: its files would be replaced", e.Target)
}

// RefuseSource refuses to write files to a folder of a local source, by whatever path: what is there is part of the source. A single
// ComfyUI file may lie beside its source, whose name it never has.
func RefuseSource(source string, files []string, out string, written []string, layout plan.Layout) error {
	if layout == plan.ComfyUI {
		return nil
	}
	theirs, err := stats(source, foldersOf(files))
	if err != nil {
		return err
	}
	ours, err := stats(out, foldersOf(written))
	for _, info := range ours {
		if slices.ContainsFunc(theirs, func(own os.FileInfo) bool { return os.SameFile(info, own) }) {
			return &SourceTargetError{out}
		}
	}
	return err
}

// foldersOf lists the folders that files lie in, directly or deeper: at least ".".
func foldersOf(files []string) []string {
	dirs := map[string]bool{".": true}
	for _, name := range files {
		for dir := path.Dir(name); !dirs[dir]; dir = path.Dir(dir) {
			dirs[dir] = true
		}
	}
	return slices.Collect(maps.Keys(dirs))
}

// stats describes the folders that are there.
func stats(dir string, names []string) (found []os.FileInfo, err error) {
	for _, name := range names {
		info, err := os.Stat(filepath.Join(dir, filepath.FromSlash(name)))
		if err == nil {
			found = append(found, info)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return found, nil
}
