package back

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/df11-convert/df11-convert/internal/disk"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/reader"
)

// A Folder holds rebuilt files and their index, and locks out other runs. It doesn't matter who
// wrote a file: a file with the right content is done.
type Folder struct {
	disk  *disk.Folder
	done  map[string]bool // files that are there and right, by path
	index index
}

// OpenFolder creates the folder, locks it, and finds out which of the files are there. Without
// force, other weights and files that would be replaced are an OccupiedError. Files get no
// permissions beyond perm. The caller closes the folder.
func OpenFolder(ctx context.Context, root string, files []model.File, perm fs.FileMode,
	force bool) (*Folder, error) {
	f, err := disk.OpenFolder(disk.Output, root, perm)
	if err != nil {
		return nil, err
	}
	f.InTheWay = func(name string) error {
		return &OccupiedError{Folder: f.Root.Name(), Replaced: []string{name}}
	}
	d := &Folder{f, map[string]bool{}, indexOf(files)}
	occupied, err := d.look(ctx, files)
	if err == nil && !force && len(occupied.Replaced)+len(occupied.Others) > 0 {
		err = occupied
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// look goes through every folder that will be written to.
func (d *Folder) look(ctx context.Context, files []model.File) (e *OccupiedError, err error) {
	e = &OccupiedError{Folder: d.disk.Root.Name()}
	wanted, dirs := map[string]bool{}, map[string]bool{}
	for _, f := range files {
		wanted[f.Path], dirs[path.Dir(f.Path)] = true, true
		if err := d.find(e, f.Path,
			func() bool { return d.disk.Hash(ctx, f.Path, f.Size, sha256.New()) == f.SHA256 }); err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	if d.index.name != "" {
		err = d.find(e, d.index.name, func() bool { return d.index.isIn(d.disk) })
	}
	for dir := range dirs {
		entries, missing := fs.ReadDir(d.disk.Root.FS(), dir)
		if !errors.Is(missing, fs.ErrNotExist) {
			err = errors.Join(err, missing)
		}
		for _, entry := range entries {
			if name := path.Join(dir, entry.Name()); reader.IsSafetensors(name) && !wanted[name] {
				e.Others = append(e.Others, name)
			}
		}
	}
	return e, err
}

// find checks a file that will be written. If it's there with the right content, it's done.
// Otherwise find adds it to the files that would be replaced.
func (d *Folder) find(e *OccupiedError, name string, isRight func() bool) error {
	info, err := d.disk.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return d.disk.Unusable(err)
	}
	if d.done[name] = info.Mode().IsRegular() && isRight(); !d.done[name] {
		e.Replaced = append(e.Replaced, name)
		d.disk.Known[name] = disk.Version(info)
	}
	return nil
}

// Has reports whether a file was there when the folder was opened, with the right content.
func (d *Folder) Has(f model.File) bool { return d.done[f.Path] }

// Index returns the name of the index in the folder; "" if there is none.
func (d *Folder) Index() string { return d.index.name }

// Finish writes the index, unless an index that says the same was there, such as the original's
// own.
func (d *Folder) Finish() error {
	if d.index.name == "" || d.done[d.index.name] {
		return nil
	}
	f, err := d.disk.Create(d.index.name, int64(len(d.index.data)))
	if err != nil {
		return err
	}
	return f.WriteAll(d.index.data)
}

// Close releases the lock. It leaves alone the state of an unfinished conversion in the folder.
func (d *Folder) Close() error { return d.disk.Leave() }

// An OccupiedError says that a folder holds other weights.
type OccupiedError struct {
	Folder string
	// weights with the names of files to be written, and any others
	Replaced, Others []string
}

func (e *OccupiedError) Error() string {
	if len(e.Replaced) > 0 {
		return fmt.Sprintf("%s holds other files with the names of the original's: %s", e.Folder,
			human.List(e.Replaced))
	}
	return fmt.Sprintf("%s holds weights of another model: %s", e.Folder, human.List(e.Others))
}

// CheckPlaces refuses to write files to a folder if that could do harm. The names come from a
// model's manifest, which may be forged, so it refuses all but plain names of weights. It also
// refuses a folder that belongs to the model d itself.
func CheckPlaces(d *model.DF11, root string, files []model.File) error {
	var paths []string
	for _, f := range files {
		if !reader.IsWeightName(f.Path) {
			return model.Invalidf("",
				"the original's file %q has no plain .safetensors name, so it isn't written", f.Path)
		}
		paths = append(paths, f.Path)
	}
	if a, b := plan.Collision(paths); a != "" {
		return model.Invalidf("",
			"%q and %q of the original can't both exist on a case-insensitive file system", a, b)
	}
	if len(files) == 0 {
		return model.Invalidf("", "no file of the original is known")
	}
	for _, p := range paths {
		if own, err := BringsAlong(d, filepath.Join(root, filepath.FromSlash(p))); err != nil || own {
			return cmp.Or(err, error(&OwnInputError{root}))
		}
	}
	return nil
}

// An OwnInputError says that a model would be decoded into itself.
type OwnInputError struct{ Folder string }

func (e *OwnInputError) Error() string {
	return e.Folder + " belongs to the model that would be decoded"
}

// BringsAlong reports whether a path belongs to a local model: it lies in the model's folder, or
// it's the model's one file. It compares folders by identity: a folder can have many names, through
// case, mounts, and links.
func BringsAlong(d *model.DF11, at string) (bool, error) {
	if d.Local() == "" {
		return false, nil
	}
	top, err := os.Stat(d.Local())
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(disk.Above(at), func(above string) bool {
		there, err := os.Stat(above)
		return err == nil && os.SameFile(top, there)
	}), nil
}
