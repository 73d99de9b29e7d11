// Package docs_test checks the pages against the code: links, names of files, functions, and tests,
// and the bounds that a page states.
package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// TestMain runs the tests in the root of the repository: pages name files by their paths from there.
func TestMain(m *testing.M) {
	if err := os.Chdir(".."); err != nil {
		panic(err)
	}
	m.Run()
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
