package df11convert

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/names"
)

// judges says which code may look at names in a way of its own, and why. Only internal/names judges
// paths of repos, repo IDs, commits, and SHA-256 sums.
var judges = map[string]string{
	"internal/model/copies.go":    "paths of this machine, to which links lead",
	"hub/internal/wire/errors.go": "what a terminal may show",
}

// asks are what a second judge of paths or hashes would ask.
var asks = []string{"fs.ValidPath(", "filepath.IsLocal(", "unicode.IsControl(", "hex.DecodeString(",
	"a-f]{40", "a-f]{64"}

// TestNamesAreJudgedOnce checks that only internal/names judges names, and that only it spells the
// names of files that the program writes.
func TestNamesAreJudgedOnce(t *testing.T) {
	var spelled []string
	for _, name := range []string{names.Config, names.Card, names.Manifest, names.Chart, names.Weights,
		names.ModelIndex, names.Attributes, names.Ours, names.StateDir} {
		spelled = append(spelled, strconv.Quote(name))
	}
	for dir, files := range goFiles(t) {
		if dir == "internal/names" || strings.HasPrefix(dir, "internal/hubtest") || strings.HasPrefix(dir, "internal/testing") {
			continue
		}
		for _, f := range files {
			text, file := read(t, f.path), filepath.ToSlash(f.path)
			has := func(s string) bool { return strings.Contains(text, s) }
			if judged := slices.ContainsFunc(asks, has); !f.test && judged != (judges[file] != "") {
				t.Errorf("%s judges names: %v", file, judged)
			}
			if at := slices.IndexFunc(spelled, has); !f.test && at >= 0 {
				t.Errorf("%s spells %s: internal/names has a name for it", file, spelled[at])
			}
		}
	}
}
