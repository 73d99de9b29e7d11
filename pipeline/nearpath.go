package pipeline

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/model"
)

// hintPath adds a hint to the error that neither this machine nor a Hub has something of a name, if
// this machine has something of nearly that name.
func hintPath(err error, spec string) error {
	if near := nearPath(spec); near != "" {
		return hint.On(err, hint.NearPath.With("path", near))
	}
	return err
}

// maxEntries bounds the names of a folder that are compared.
const maxEntries = 10_000

// nearPath returns the path of something on this machine whose name has one other word than a path
// that leads nowhere, and nearly the same one; or "".
func nearPath(spec string) string {
	dir, word, rest := filepath.Clean(spec), "", ""
	for ; !model.Exists(dir); dir = filepath.Dir(dir) {
		if word != "" {
			rest = filepath.Join(word, rest)
		}
		word = filepath.Base(dir)
		if dir == filepath.Dir(dir) { // nothing is there: a browser has no files, or someone removed it all
			return ""
		}
	}
	folder, err := os.Open(dir)
	if err != nil || word == "" {
		return ""
	}
	defer folder.Close()
	entries, _ := folder.Readdirnames(maxEntries) // what it could read
	word = human.Misspelled(word, entries)
	near := filepath.Join(dir, word, rest)
	if word == "" || !model.Exists(near) {
		return ""
	}
	if strings.HasPrefix(spec, "."+string(filepath.Separator)) {
		near = "." + string(filepath.Separator) + near
	}
	return near
}
