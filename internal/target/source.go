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

// RefuseSource refuses an output folder that is a folder of a local source, by whatever path: config.json and the remainder have
// the names of the source's files, and files there are part of the source. A written file may not be one of the source's files
// anywhere. A single ComfyUI file may lie beside its source.
func RefuseSource(source string, files []string, out string, written []string, layout plan.Layout) error {
	same, err := haveSame(os.Stat, source, foldersOf(files), out, []string{"."})
	if err == nil && (!same || layout == plan.ComfyUI) {
		same, err = haveSame(os.Lstat, source, files, out, written)
	}
	if err == nil && same {
		return &SourceTargetError{out}
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

// haveSame reports whether one of the files of a folder is one of the files of another folder. Files need not be there.
func haveSame(stat func(string) (os.FileInfo, error), dirA string, as []string, dirB string, bs []string) (bool, error) {
	a, err := stats(stat, dirA, as)
	if err != nil {
		return false, err
	}
	b, err := stats(stat, dirB, bs)
	return slices.ContainsFunc(a, func(x os.FileInfo) bool {
		return slices.ContainsFunc(b, func(y os.FileInfo) bool { return os.SameFile(x, y) })
	}), err
}

// stats describes the files that are there; an empty name is none.
func stats(stat func(string) (os.FileInfo, error), dir string, names []string) (found []os.FileInfo, err error) {
	for _, name := range names {
		if name == "" {
			continue
		}
		info, err := stat(filepath.Join(dir, filepath.FromSlash(name)))
		if err == nil {
			found = append(found, info)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return found, nil
}
