// Package df11convert holds only tests of the repository as a whole: what its packages may import,
// and what its pages say.
package df11convert

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/testing/world"
)

const module = "github.com/df11-convert/df11-convert/"

// arrows says what the code of each directory may import from this module. "*" is everything; a
// directory ending in "/..." stands for all below it.
var arrows = map[string][]string{
	"encoder":                  {},
	"internal/safetensors":     {"internal/python", "internal/streams"},
	"internal/disk":            {"internal/streams"},
	"verify/internal/...":      {},
	"verify":                   {"verify/kernel", "verify/internal/..."},
	"verify/kernel":            {},
	"internal/plan":            {"internal/reader", "encoder", "internal/catalog", "internal/human", "internal/python", "internal/safetensors"},
	"internal/reader":          {"internal/catalog", "internal/python"},
	"internal/catalog":         {"internal/human", "internal/python", "internal/safetensors"},
	"internal/fits":            {"internal/catalog"},
	"internal/metadata":        {"internal/fits", "internal/hubrules", "internal/human", "internal/catalog", "internal/plan", "internal/python"},
	"internal/names":           {},
	"internal/human":           {},
	"internal/python":          {},
	"internal/charts":          {"internal/describe", "internal/human"},
	"hub":                      {"hub/internal/wire", "internal/disk", "internal/human", "internal/streams"},
	"hub/internal/wire":        {"internal/disk"},
	"internal/hubrules":        {"internal/human"},
	"internal/hubtest":         {"internal/hubrules"},
	"internal/hubtest/hubd":    {"internal/hubtest"},
	"internal/testing/bench":   {"encoder", "verify"},
	"internal/testing/golden":  {"internal/testing/plain"},
	"internal/testing/...":     {},
	"internal/spans":           {"internal/human", "internal/plan", "internal/safetensors"},
	"internal/streams":         {},
	"internal/progress":        {},
	"internal/terminal":        {"internal/human"},
	"internal/usage":           {},
	"internal/address":         {"internal/reader", "internal/usage"},
	"pipeline":                 {"hub", "verify", "internal/address", "internal/back", "internal/budget", "internal/catalog", "internal/charts", "internal/convert", "internal/describe", "internal/disk", "internal/fits", "internal/forward", "internal/hubrules", "internal/human", "internal/metadata", "internal/model", "internal/plan", "internal/progress", "internal/publish", "internal/safetensors", "internal/spans", "internal/usage"},
	"internal/forward/spool":   {"internal/disk", "internal/names", "internal/spans", "internal/streams"},
	"internal/ledger":          {"internal/metadata", "internal/plan", "internal/disk", "internal/python"},
	"internal/model":           {"internal/reader", "hub", "encoder", "verify", "internal/human", "internal/catalog", "internal/plan", "internal/metadata", "internal/python", "internal/safetensors", "internal/disk", "internal/spans", "internal/streams"},
	"internal/forward/fetch":   {"encoder", "internal/model", "internal/plan", "internal/ledger", "internal/metadata", "internal/forward/spool", "internal/spans", "internal/progress", "internal/streams"},
	"internal/budget":          {"encoder", "hub", "internal/hubrules", "internal/human", "internal/model", "internal/plan", "internal/safetensors", "internal/spans", "internal/streams"},
	"internal/describe":        {"encoder", "verify", "internal/model", "internal/human", "internal/streams"},
	"internal/forward/compare": {"verify", "internal/plan", "internal/metadata", "internal/model", "internal/forward/spool", "internal/spans", "internal/progress", "internal/streams"},
	"internal/forward":         {"encoder", "internal/disk", "internal/budget", "internal/forward/compare", "internal/forward/fetch", "internal/ledger", "internal/metadata", "internal/model", "internal/catalog", "internal/plan", "internal/progress", "internal/safetensors", "internal/spans", "internal/forward/spool", "internal/streams", "internal/publish"},
	"internal/back":            {"internal/reader", "verify", "internal/human", "internal/model", "internal/spans", "internal/catalog", "internal/plan", "internal/metadata", "internal/safetensors", "internal/progress", "internal/streams", "internal/disk"},
	"internal/publish":         {"internal/reader", "hub", "internal/human", "internal/model", "internal/ledger", "internal/metadata", "internal/catalog", "internal/plan", "internal/spans", "internal/disk"},
	"internal/convert":         {"hub", "internal/hubrules", "internal/human", "internal/catalog", "internal/plan", "internal/metadata", "internal/python", "internal/charts", "internal/safetensors", "internal/spans", "internal/streams", "internal/progress", "internal/ledger", "internal/model", "internal/budget", "internal/describe", "internal/forward", "internal/back", "internal/publish"},
	"cmd/df11-convert":         {"*"},
	"cmd/df11-convert/...":     {"*"},
	".":                        {"internal/names"},
}

// below is below everything, but encoder and verify import nothing, and a Hub for tests judges names
// by itself.
const below = "internal/names"

var without = []string{"encoder", "verify", "verify/kernel", "internal/hubtest", "internal/hubtest/hubd"}

// inTests are what the tests of every package may import as well.
var inTests = []string{"encoder", "internal/hubtest", "internal/testing/golden", "internal/testing/plain", "internal/testing/ptx", "internal/testing/alloc", "internal/testing/world"}

// homes says where a library may be used; everything that is not listed may be used anywhere.
var homes = map[string][]string{
	"github.com/KimMachineGun/automemlimit": {"pipeline"},
	"github.com/dustin/go-humanize":         {"cmd/df11-convert"},
	"github.com/schollz/progressbar":        {"internal/terminal"},
	"github.com/spf13/cobra":                {"cmd/df11-convert"},
	"golang.org/x/term":                     {"cmd/df11-convert"},
	"github.com/gomlx/go-huggingface":       {"hub", "hub/internal/wire"},
	"github.com/ebitengine/purego":          {"verify/internal/..."},
	"golang.org/x/image":                    {"internal/charts"},
	"go.yaml.in/yaml":                       {"internal/metadata", "internal/hubtest", "cmd/df11-convert"},
	"net/http":                              {"hub", "hub/internal/wire", "internal/hubtest", "internal/hubtest/hubd", "cmd/df11-convert", "internal/convert"},
}

// pure packages compute: the same input gives the same bytes, on any machine, at any time.
var pure = []string{"encoder", "internal/reader", "internal/catalog", "internal/plan", "internal/metadata", "internal/safetensors", "internal/charts", "internal/hubrules", "internal/human", "internal/names", "internal/python", "internal/spans"}

// impure are the standard packages that pure ones may not use.
var impure = []string{"net", "os", "time", "log", "math/rand", "runtime/debug", "syscall", "unsafe"}

func TestImports(t *testing.T) {
	used := map[[2]string]bool{}
	for dir, files := range goFiles(t) {
		key := match(dir, slices.Collect(maps.Keys(arrows)))
		if key == "" {
			t.Errorf("%s: no arrows are drawn for this directory; add them here, and the package to CONTRIBUTING.md", dir)
			continue
		}
		for _, f := range files {
			for _, imported := range importsOf(t, f) {
				checkImport(t, dir, key, f, imported)
				own := strings.TrimPrefix(imported, module)
				used[[2]string{key, match(own, arrows[key])}] = true
			}
		}
	}
	for key, list := range arrows {
		for _, a := range list {
			if a != "*" && !used[[2]string{key, a}] {
				t.Errorf("the arrow from %s to %s isn't used", key, a)
			}
		}
	}
}

// checkImport applies every rule to one import. Tests of a package x_test may import anything,
// since nothing can import them.
func checkImport(t *testing.T, dir, key string, f goFile, imported string) {
	if own, ok := strings.CutPrefix(imported, module); ok {
		allowed := slices.Contains(arrows[key], "*") || own == dir || match(own, arrows[key]) != "" ||
			own == below && !slices.Contains(without, dir)
		if !allowed && !(f.test && slices.Contains(inTests, own)) {
			t.Errorf("%s imports %s: no arrow leads from %s to there", f.path, own, dir)
		}
	}
	if f.test {
		return
	}
	within := func(above string) bool { return imported == above || strings.HasPrefix(imported, above+"/") }
	for lib, home := range homes {
		if within(lib) && match(dir, home) == "" {
			t.Errorf("%s imports %s, whose only homes are %s", f.path, imported, strings.Join(home, ", "))
		}
	}
	if slices.Contains(pure, dir) && slices.ContainsFunc(impure, within) {
		t.Errorf("%s imports %s, but %s is pure", f.path, imported, dir)
	}
}

// readsJSON says which code may read JSON by package json, which does not read as a loader does:
// that package itself, and code that reads what no loader reads and no model brings along.
var readsJSON = []string{
	"internal/python", "hub", "hub/internal/wire", // answers of the Hub
	"internal/hubtest", "internal/hubtest/hubd", "internal/testing/golden", // for tests
	"internal/catalog/catalog.go",    // part of the program
	"internal/safetensors/parser.go", // single tokens
	"internal/forward/lint.go",       // a second reader for headers that the first one has read
}

func TestJSONIsReadAsPythonDoes(t *testing.T) {
	for dir, files := range goFiles(t) {
		for _, f := range files {
			if f.test || slices.Contains(readsJSON, dir) || slices.Contains(readsJSON, f.path) {
				continue
			}
			for _, call := range []string{"json.Unmarshal(", "json.NewDecoder("} {
				if strings.Contains(read(t, f.path), call) {
					t.Errorf("%s: %s matches names in any case: read by package python", f.path, call)
				}
			}
		}
	}
}

// match returns the pattern that covers dir: dir itself, or the longest "x/..." above it; "" if
// there is none.
func match(dir string, patterns []string) string {
	best := ""
	for _, p := range patterns {
		above, below := strings.CutSuffix(p, "/...")
		if p == dir {
			return p
		}
		if below && strings.HasPrefix(dir, above+"/") && len(p) > len(best) {
			best = p
		}
	}
	return best
}

// goFile is a Go file of the module.
type goFile struct {
	path string
	test bool
}

// goFiles returns all Go files by directory, whatever their build tags.
func goFiles(t *testing.T) map[string][]goFile {
	t.Helper()
	out := map[string][]goFile{}
	for _, file := range tree(t, func(dir string) bool {
		_, err := os.Stat(path.Join(dir, "go.mod"))
		return err != nil && path.Base(dir) != "testdata" && path.Base(dir)[0] != '.' // no module of its own
	}) {
		if dir := path.Dir(file); strings.HasSuffix(file, ".go") {
			out[dir] = append(out[dir], goFile{path: file, test: strings.HasSuffix(file, "_test.go")})
		}
	}
	return out
}

// tree returns the files of the repository, by paths with slashes, in the folders that enter
// accepts.
func tree(t *testing.T, enter func(dir string) bool) (files []string) {
	t.Helper()
	world.Must(t, filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		name = filepath.ToSlash(name)
		switch {
		case err != nil:
			return err
		case !d.IsDir():
			files = append(files, name)
		case name != "." && (d.Name() == ".git" || d.Name() == "node_modules" || !enter(name)):
			return filepath.SkipDir
		}
		return nil
	}))
	return files
}

// parsed returns the syntax of a file.
func parsed(t *testing.T, f goFile) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), f.path, nil, 0)
	world.Must(t, err)
	return file
}

// importsOf returns the imports of a file that the rules are about: none for tests of a package
// x_test.
func importsOf(t *testing.T, f goFile) (paths []string) {
	t.Helper()
	file := parsed(t, f)
	if f.test && strings.HasSuffix(file.Name.Name, "_test") {
		return nil
	}
	for _, i := range file.Imports {
		paths = append(paths, strings.Trim(i.Path.Value, `"`))
	}
	return paths
}
