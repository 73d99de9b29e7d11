package back

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
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
	f, err := disk.OpenOrRead(disk.Output, root, perm)
	if err != nil {
		return nil, err
	}
	f.InTheWay = func(name string) error {
		return &OccupiedError{f.Root.Name(), []string{name}}
	}
	d := &Folder{f, map[string]bool{}, indexOf(files)}
	others, err := d.look(ctx, files)
	missing := func(f model.File) bool { return !d.Has(f) }
	if err == nil && (slices.ContainsFunc(files, missing) || d.index.Path != "" && missing(d.index.File)) {
		err = f.ReadOnly()
	}
	if err == nil && !force && len(others) > 0 {
		err = &OccupiedError{f.Root.Name(), others}
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// look goes through every folder that will be written to. It finds out which files are there with
// the right content, and returns those that would be replaced, and other weights.
func (d *Folder) look(ctx context.Context, files []model.File) (others []string, err error) {
	dirs := map[string]bool{}
	if d.index.Path != "" {
		files = append(slices.Clone(files), d.index.File)
	}
	for _, f := range files {
		dirs[path.Dir(f.Path)] = true
		info, err := d.disk.Lstat(f.Path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, d.disk.Unusable(err)
		}
		d.done[f.Path] = d.disk.Hash(ctx, f.Path, f.Size, sha256.New()) == f.SHA256
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if !d.done[f.Path] {
			others = append(others, f.Path)
			d.disk.Versions[f.Path] = disk.Version(info)
		}
	}
	for dir := range dirs {
		entries, err := fs.ReadDir(d.disk.Root.FS(), dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, entry := range entries {
			name := path.Join(dir, entry.Name())
			if _, wanted := d.done[name]; reader.IsSafetensors(name) && !wanted {
				others = append(others, name)
			}
		}
	}
	return others, nil
}

// Has reports whether a file was there when the folder was opened, with the right content.
func (d *Folder) Has(f model.File) bool { return d.done[f.Path] }

// Missing returns how many bytes more the folder must hold to have all of the files.
func (d *Folder) Missing(files []model.File) (n int64) {
	for _, f := range files {
		if d.Has(f) {
			continue
		}
		n += f.Size
		if info, err := d.disk.Lstat(f.Path); err == nil {
			n -= info.Size() // of the file that it replaces
		}
	}
	return n
}

// Index returns the name of the index in the folder; "" if there is none.
func (d *Folder) Index() string { return d.index.Path }

// Finish writes the index, unless it was there.
func (d *Folder) Finish() error {
	if d.index.Path == "" || d.Has(d.index.File) {
		return nil
	}
	f, err := d.disk.Create(d.index.Path, d.index.Size)
	if err != nil {
		return err
	}
	return f.WriteAll(d.index.data)
}

// Close releases the lock. It leaves alone the state of an unfinished conversion in the folder.
func (d *Folder) Close() error { return d.disk.Close() }

// An OccupiedError says that a folder holds other weights, or files with names of the original's.
type OccupiedError struct {
	Folder string
	Files  []string
}

func (e *OccupiedError) Error() string {
	return e.Folder + " holds other weights or files: " + human.List(e.Files)
}

// CheckPlaces refuses to write files to a folder if that could do harm. The names come from a
// model's manifest, which may be forged, so it refuses all but plain names of weights. It also
// refuses a folder that belongs to the model d itself.
func CheckPlaces(d *model.DF11, root string, files []model.File) error {
	if err := checkPaths(files); err != nil {
		return err
	}
	for _, f := range files {
		at := filepath.Join(root, filepath.FromSlash(f.Path))
		if own, err := BringsAlong(d, at); err != nil || own {
			return cmp.Or(err, error(&OwnInputError{root}))
		}
	}
	return nil
}

// checkPaths refuses files that no decoding writes, because of their names.
func checkPaths(files []model.File) error {
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
	return nil
}

// An OwnInputError says that a model would be decoded into itself.
type OwnInputError struct{ Folder string }

func (e *OwnInputError) Error() string {
	return e.Folder + " belongs to the model that would be decoded"
}

// BringsAlong reports whether a path belongs to a local model: it lies in the model's folder, or
// it's the model's one file.
func BringsAlong(d *model.DF11, at string) (bool, error) {
	if d.Local() == "" {
		return false, nil
	}
	return disk.IsWithin(at, d.Local())
}
