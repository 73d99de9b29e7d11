package docs_test

import (
	"go/ast"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestWayOfOneTensor checks that the files and functions exist that docs/design.md names on the way
// of one tensor.
func TestWayOfOneTensor(t *testing.T) {
	way := section(t, "docs/design.md", "The way of one tensor")
	steps := regexp.MustCompile(`(?m)^\d+\. `).Split(way, -1)[1:]
	if len(steps) == 0 {
		t.Error("the way has no steps")
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

// TestGlossary checks that each term of docs/design.md's glossary is, as the glossary says, a name in
// the code, in whatever case and form.
func TestGlossary(t *testing.T) {
	names := map[string]bool{}
	for dir, files := range goFiles(t) {
		for _, f := range files {
			if !f.test && (strings.HasPrefix(dir, "internal/") || dir == "pipeline") {
				ast.Inspect(parsed(t, f), func(n ast.Node) bool {
					if id, ok := n.(*ast.Ident); ok {
						names[strings.ToLower(id.Name)] = true
					}
					return true
				})
			}
		}
	}
	table := section(t, "docs/design.md", "Glossary")
	rows := regexp.MustCompile(`(?m)^\| ([^|]+) \| (.+) \|$`).FindAllStringSubmatch(table, -1)
	var terms []string
	for _, row := range rows {
		if row[1] == "term" || strings.HasPrefix(row[1], "---") {
			continue
		}
		terms = append(terms, strings.Split(row[1], ", ")...)
		for _, bold := range regexp.MustCompile(`\*\*([^*]+)\*\*`).FindAllStringSubmatch(row[2], -1) {
			terms = append(terms, bold[1])
		}
	}
	if len(terms) < 30 {
		t.Errorf("only %d terms", len(terms))
	}
	for _, term := range terms {
		name := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(term, "to "), " ", ""))
		if !names[name] {
			t.Errorf("no name in the code is %q", term)
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

// TestTableOfRetries checks that the functions exist that docs/design.md lists as those that repeat
// what failed, with the bounds in the code.
func TestTableOfRetries(t *testing.T) {
	rows, quoted := 0, regexp.MustCompile("`([^`]+)`")
	for row := range strings.Lines(section(t, "docs/design.md", "What is repeated")) {
		names := quoted.FindAllStringSubmatch(row, -1)
		if !strings.HasPrefix(row, "| ") || len(names) < 2 {
			continue
		}
		rows++
		file, function := names[0][1], names[1][1]
		if !hasFunction(t, path.Dir(file), function) {
			t.Errorf("%s has no function %s", file, function)
		}
		for _, bound := range names[2:] {
			if strings.Contains(bound[1], " = ") && !hasConstant(t, path.Dir(file), bound[1]) {
				t.Errorf("%s: the code has not %s", file, bound[1])
			}
		}
	}
	if rows < 5 {
		t.Errorf("%d rows", rows)
	}
}

// hasConstant reports whether a package has a line like "name = value".
func hasConstant(t *testing.T, dir, constant string) bool {
	t.Helper()
	line := regexp.MustCompile(`(?m)^\s*(const )?` + strings.Replace(regexp.QuoteMeta(constant), " = ", ` += `, 1) + `( +//.*)?$`)
	return slices.ContainsFunc(goFiles(t)[dir], func(f goFile) bool { return line.MatchString(read(t, f.path)) })
}
