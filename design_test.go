package df11convert

import (
	"go/ast"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// TestWayOfOneTensor checks that the files and functions exist that docs/design.md names on the way
// of one tensor, and that the way has at most 12 steps.
func TestWayOfOneTensor(t *testing.T) {
	b, err := os.ReadFile("docs/design.md")
	if err != nil {
		t.Fatal(err)
	}
	_, way, ok := strings.Cut(string(b), "\n## The way of one tensor\n")
	if !ok {
		t.Fatal("docs/design.md has no section of that name")
	}
	way, _, _ = strings.Cut(way, "\n## ")
	steps := regexp.MustCompile(`(?m)^\d+\. `).Split(way, -1)[1:]
	if len(steps) == 0 || len(steps) > 12 {
		t.Errorf("the way has %d steps", len(steps))
	}
	named := regexp.MustCompile("`([^`]+)`")
	for _, step := range steps {
		var file string
		for _, m := range named.FindAllStringSubmatch(step, -1) {
			switch name := m[1]; {
			case strings.HasSuffix(name, ".go") && strings.Contains(name, "/"):
				if _, err := os.Stat(name); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				if file == "" {
					file = name
				}
			case strings.HasSuffix(name, ".go"):
				if _, err := os.Stat(path.Join(path.Dir(file), name)); err != nil {
					t.Error(err)
				}
			default:
				if !hasFunction(t, path.Dir(file), name) {
					t.Errorf("%s has no function %s", path.Dir(file), name)
				}
			}
		}
	}
}

// hasFunction reports whether a package has a function, a method, or a package below the module of
// that name.
func hasFunction(t *testing.T, dir, name string) bool {
	t.Helper()
	if st, err := os.Stat(name); err == nil && st.IsDir() {
		return true
	}
	for _, f := range goFiles(t)[dir] {
		for _, d := range parsed(t, f).Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Name.Name == name && !f.test {
				return true
			}
		}
	}
	return false
}
