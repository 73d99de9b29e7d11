package names_test

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// judges says which code may look at names in a way of its own, and why. Only internal/names judges
// paths of repos, repo IDs, commits, and SHA-256 sums.
var judges = map[string]string{
	"internal/human/shell.go":  "what a shell needs no quotes for",
	"internal/model/header.go": "whether a file is a text",
	"internal/model/copies.go": "paths of this machine, to which links lead",
	"hub/errors.go":            "what a terminal may show",
}

// asks are what a second judge of paths or hashes would ask.
var asks = []string{"fs.ValidPath(", "filepath.IsLocal(", "unicode.IsControl(", "hex.DecodeString("}

// compiled finds regular expressions in code.
var compiled = regexp.MustCompile("regexp\\.MustCompile\\(\\s*(`[^`]*`|\"(?:[^\"\\\\]|\\\\.)*\")")

// TestNamesAreJudgedOnce checks that only internal/names judges names, and that only it spells the
// names of files that the program writes.
func TestNamesAreJudgedOnce(t *testing.T) {
	var spelled []string
	for _, name := range []string{names.Config, names.Card, names.Manifest, names.Chart, names.Weights,
		names.ModelIndex, names.Attributes, names.Ours, names.StateDir,
		names.Remainder + ".safetensors", names.Whole + ".safetensors"} {
		spelled = append(spelled, strconv.Quote(name))
	}
	n := 0
	for path, text := range code(t) {
		if strings.HasPrefix(path, "internal/names/") || strings.HasPrefix(path, "internal/hubtest/") || strings.HasPrefix(path, "internal/testing/") {
			continue
		}
		n++
		has := func(s string) bool { return strings.Contains(text, s) }
		judged := slices.ContainsFunc(asks, has)
		for _, m := range compiled.FindAllStringSubmatch(text, -1) {
			expression, _ := strconv.Unquote(m[1])
			re, err := regexp.Compile(expression) // of a text in parts, only the first
			judged = judged || err == nil && judgesNames(re)
		}
		if judged != (judges[path] != "") {
			t.Errorf("%s judges names: %v", path, judged)
		}
		if at := slices.IndexFunc(spelled, has); at >= 0 {
			t.Errorf("%s spells %s: internal/names has a name for it", path, spelled[at])
		}
	}
	if n < 300 {
		t.Errorf("only %d files", n)
	}
}

// code returns the Go files of the module but its tests, whatever their build tags, by their paths.
func code(t *testing.T) map[string]string {
	t.Helper()
	const root = "../.."
	files := map[string]string{}
	world.Must(t, filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "node_modules" || d.Name()[0] == '.' && d.Name() != ".."):
			return filepath.SkipDir
		case strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go"):
			path, err := filepath.Rel(root, name)
			world.Must(t, err)
			files[filepath.ToSlash(path)] = string(world.Read(t, name))
		}
		return nil
	}))
	return files
}

// judgesNames reports whether an expression accepts a name of some kind, and refuses a name that
// is nearly of that kind.
func judgesNames(re *regexp.Regexp) bool {
	accepts := func(yes, no string) bool { return re.MatchString(yes) && !re.MatchString(no) }
	commit, sum := strings.Repeat("0a", 20), strings.Repeat("0a", 32)
	return accepts(commit, commit[1:]) || accepts(sum, sum[1:]) || accepts(sum, sum[1:]+"g") ||
		strings.Contains(re.String(), "a-f]{40") || strings.Contains(re.String(), "a-f]{64") ||
		accepts("meta-llama/Llama-3.1-8B", "meta-llama/Llama 3.1 8B") ||
		accepts("con", "cone") || accepts("nul.txt", "nula.txt")
}

func TestJudgesNames(t *testing.T) {
	for text, want := range map[string]bool{
		`^[0-9a-f]{40}$`: true, `^([0-9a-f]{40}|[0-9a-f]{64})$`: true, `(?i)[a-f0-9]{64}`: true,
		`/blobs/([0-9a-f]{64})$`: true, `^\w[\w.-]*/\w[\w.-]*$`: true, `(?i)^(con|aux)(\.|$)`: true,
		`^[0-9a-f]{2}/`: false, `\d+`: false, `^[A-Z][A-Za-z0-9]*$`: false, `.*`: false,
	} {
		if judgesNames(regexp.MustCompile(text)) != want {
			t.Errorf("%s: want %v", text, want)
		}
	}
}
