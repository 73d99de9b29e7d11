package publish

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/disk"
	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
)

// SourceTargetError says that the result would take the place of its source, or, with Inside, a
// place in it. Flag is the one that chooses another target.
type SourceTargetError struct {
	Target, Flag string
	Inside       bool
}

func (e *SourceTargetError) Error() string {
	if e.Inside {
		return fmt.Sprintf("%s is inside the source, a DF11 model, which would have files too many",
			e.Target)
	}
	return fmt.Sprintf("%s is the source's own: its files would be replaced", e.Target)
}

// Hint says what to do about it.
func (e *SourceTargetError) Hint() hint.Hint { return hint.SourceIsTarget.With("flag", e.Flag) }

// RefuseSource refuses to write the result to a folder of a local source, by whatever path: what is
// there is part of the source. Nor does it let a result into a DF11 model, all of whose files
// count. A single ComfyUI file may lie next to its source, whose name it never has.
func RefuseSource(m *model.Model, p *plan.Plan, out string) error {
	if m.Folder == "" || p.Layout == catalog.ComfyUI && m.From == nil {
		return nil
	}
	read, written := []string{"."}, []string{"."}
	for _, f := range m.Listing.Files {
		read = append(read, f.Path)
	}
	for _, f := range p.OutputFiles {
		written = append(written, f.Path)
	}
	theirs := foldersOf(m.Folder, read)
	for _, ours := range foldersOf(out, append(written, p.ConfigPath())) {
		if slices.ContainsFunc(theirs,
			func(own os.FileInfo) bool { return os.SameFile(ours, own) }) {
			return &SourceTargetError{Target: out, Flag: "-o"}
		}
	}
	if m.Decoded {
		inside, _ := disk.IsWithin(out, m.Folder) // if that folder is gone, reading it says so
		if inside {
			return &SourceTargetError{Target: out, Flag: "-o", Inside: true}
		}
	}
	return nil
}

// foldersOf describes the existing folders that files below a folder lie in, at any depth.
func foldersOf(root string, files []string) (found []os.FileInfo) {
	seen := map[string]bool{}
	for _, name := range files {
		for dir := path.Dir(name); !seen[dir]; dir = path.Dir(dir) {
			seen[dir] = true
			if info, err := os.Stat(filepath.Join(root, filepath.FromSlash(dir))); err == nil {
				found = append(found, info)
			}
		}
	}
	return found
}
