package hub

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"
)

// A draft is a new version of a secret file, which replaces the old one whole or not at all.
type draft struct {
	file *os.File
	path string
}

type drafts []*draft

// draftPattern is the name of a draft.
const draftPattern = ".df11-token-*"

// removeOldDrafts removes what a run that was killed has left. A running one needs its drafts for
// less than an hour.
func removeOldDrafts(dir string) {
	all, _ := filepath.Glob(filepath.Join(dir, draftPattern))
	for _, path := range all {
		if st, err := os.Lstat(path); err == nil && time.Since(st.ModTime()) > time.Hour {
			_ = os.Remove(path)
		}
	}
}

// openDrafts creates drafts of files and reserves their space, so that storing an answer later
// can't fail for lack of rights or space. A link stays, and what it leads to is replaced.
func openDrafts(paths ...string) (all drafts, err error) {
	for _, path := range paths {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			path = real
		}
		removeOldDrafts(filepath.Dir(path))
		file, err := os.CreateTemp(filepath.Dir(path), draftPattern) // mode 0600
		if err != nil {
			all.remove()
			return nil, err
		}
		d := &draft{file, path}
		all = append(all, d)
		size := int64(0)
		if st, err := os.Stat(path); err == nil {
			size = st.Size()
		}
		if _, err := file.Write(make([]byte, size+16<<10)); err != nil {
			all.remove()
			return nil, err
		}
	}
	return all, nil
}

// replaceTries is how often to give a draft its file's name, a tenth of a second apart: Windows
// refuses that while another program has the file open, as Python does while it reads it.
const replaceTries = 10

// replace gives the draft its content and the file's name.
func (d *draft) replace(ctx context.Context, clock Clock, text string) error {
	_, err := d.file.WriteAt([]byte(text), 0)
	if err == nil {
		err = d.file.Truncate(int64(len(text)))
	}
	if err == nil {
		err = d.file.Sync()
	}
	if err = errors.Join(err, d.file.Close()); err != nil {
		return err
	}
	for range replaceTries {
		if err = os.Rename(d.file.Name(), d.path); err == nil {
			return nil
		}
		if clock.Sleep(ctx, time.Second/10) != nil {
			break
		}
	}
	return err
}

// remove removes the drafts that replaced nothing.
func (all drafts) remove() {
	for _, d := range all {
		_ = d.file.Close()
		_ = os.Remove(d.file.Name())
	}
}
