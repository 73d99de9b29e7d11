package publish

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// TestFolderLooksAgain checks that a folder isn't finished if a file of the result is gone or was
// changed after the run wrote it. A card of someone else's may change.
func TestFolderLooksAgain(t *testing.T) {
	const name = "config.json"
	for what, tt := range map[string]struct {
		name, content string // of the change; "" removes the file
		lost          bool
	}{
		"nothing":              {"other.json", "x", false},
		"a file goes":          {name, "", true},
		"a file changes":       {name, "[]", true},
		"someone's card goes":  {names.Card, "", false},
		"someone's card comes": {names.Card, "more", false},
	} {
		root := t.TempDir()
		world.Write(t, filepath.Join(root, names.Card), []byte("theirs"))
		p := &plan.Plan{Config: name}
		f, err := OpenFolder(t.Context(), root, true, NewConversion(p, OriginOf(&model.Model{}), "part", false), 0o666)
		world.Must(t, err)
		r := &Result{Files: []SideFile{NewSideFile(names.Card, "", []byte("card")), NewSideFile(name, "", []byte("{}"))}}
		world.Must(t, f.Finish(t.Context(), r))
		if tt.content == "" {
			world.Must(t, os.Remove(filepath.Join(root, tt.name)))
		} else {
			world.Write(t, filepath.Join(root, tt.name), []byte(tt.content))
		}
		var lost *LostFileError
		if err := f.hold(r.all()); errors.As(err, &lost) != tt.lost || !tt.lost && err != nil {
			t.Errorf("%s: %v", what, err)
		}
		world.Must(t, f.Close(true))
	}
}
