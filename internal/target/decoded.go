package target

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/df11-convert/df11-convert/internal/atomicfile"
	"github.com/df11-convert/df11-convert/internal/plan"
)

// DecodedFile is a weight file that is to be written again. Its name has passed a check: it stays in the folder.
type DecodedFile struct {
	Path   string
	Size   int64
	SHA256 string
}

// Decoded is the folder that takes decoded files. It is locked and cleared as an output folder is, and refused if it holds
// other weights. Nothing there says who wrote a file, and nothing has to: what has the wanted content is done.
type Decoded struct {
	*Folder
	Done map[string]bool // files that were there, by path
}

// OpenDecoded makes the folder, locks it, removes what killed runs were writing, and finds out what is there. With force, other
// weights may stay, and those with the names of files may be replaced. The caller closes it.
func OpenDecoded(ctx context.Context, root string, files []DecodedFile, force bool) (*Decoded, error) {
	d := &Decoded{Folder: &Folder{State: filepath.Join(root, stateDir), Stays: true, root: root, dir: root}, Done: map[string]bool{}}
	if err := d.acquire(); err != nil {
		return nil, &FolderError{Folder: root, Stays: true, Err: err}
	}
	if err := d.look(ctx, files, force); err != nil {
		return nil, errors.Join(err, d.leave())
	}
	return d, nil
}

// look goes through every folder that is written to.
func (d *Decoded) look(ctx context.Context, files []DecodedFile, force bool) error {
	wanted, dirs := map[string]bool{}, map[string]bool{}
	e := &OccupiedError{Folder: d.root}
	for _, f := range files {
		wanted[f.Path], dirs[path.Dir(f.Path)] = true, true
		if _, err := os.Lstat(d.Path(f.Path)); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if d.Done[f.Path] = d.sum(ctx, f.Path, f.Size) == f.SHA256; !d.Done[f.Path] {
			e.Replaced = append(e.Replaced, f.Path)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	for dir := range dirs {
		entries, err := os.ReadDir(d.Path(dir))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = atomicfile.RemoveTemporary(d.Path(dir))
		}
		if err != nil {
			return err
		}
		for _, entry := range entries {
			if name := path.Join(dir, entry.Name()); plan.IsSafetensors(name) && !wanted[name] {
				e.Others = append(e.Others, name)
			}
		}
	}
	if force || len(e.Replaced)+len(e.Others) == 0 {
		return nil
	}
	return e
}

// Close gives the lock back. The state of an unfinished conversion in the folder stays.
func (d *Decoded) Close() error { return d.leave() }

// OccupiedError says that a folder holds weights of others.
type OccupiedError struct {
	Folder           string
	Replaced, Others []string // those that have the names of files to be written, and those beside them
}

func (e *OccupiedError) Error() string {
	if len(e.Replaced) > 0 {
		return fmt.Sprintf("%s holds other files with the names of the original's: %s", e.Folder, Summary(e.Replaced))
	}
	return fmt.Sprintf("%s holds weights of another model: %s", e.Folder, Summary(e.Others))
}

// OwnInputError says that a model would be decoded into itself.
type OwnInputError struct{ Folder string }

func (e *OwnInputError) Error() string {
	return e.Folder + " belongs to the model that is to be decoded"
}

// RefuseInput refuses to write files to out if that would spoil the local model that they are made of: into its folder, by
// whatever path, or below it, or over the one file that it is.
func RefuseInput(input, out string, written []string) error {
	info, err := os.Stat(input)
	if err != nil {
		return err
	}
	for _, name := range written {
		var own bool
		if info.IsDir() {
			own, err = within(info, filepath.Dir(filepath.Join(out, filepath.FromSlash(name))))
		} else {
			own, err = haveSame(os.Stat, filepath.Dir(input), []string{filepath.Base(input)}, out, []string{name})
		}
		if err != nil {
			return err
		}
		if own {
			return &OwnInputError{out}
		}
	}
	return nil
}

// within reports whether dir, which need not be there, is the folder top or lies below it. Links are followed, and folders
// compared by what they are: one folder has many names, by case, mounts and links.
func within(top fs.FileInfo, dir string) (bool, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return false, err
	}
	for {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			dir = real
		}
		info, err := os.Stat(dir)
		switch {
		case err == nil && os.SameFile(top, info):
			return true, nil
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return false, err
		case filepath.Dir(dir) == dir:
			return false, nil
		}
		dir = filepath.Dir(dir)
	}
}
