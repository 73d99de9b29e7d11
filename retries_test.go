package df11convert

import (
	"bytes"
	"go/ast"
	"go/printer"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// notRetries look like loops that retry, and say why they are none.
var notRetries = map[string]string{
	"internal/back/beside.go CompareFiles":    "compares with main, then with an older commit",
	"internal/disk/folder.go replace":         "looks at what it has made",
	"internal/safetensors/header.go tensor":   "parses two members that are lists of numbers",
	"internal/target/repo.go OpenRepo":        "opens the branch that it has made",
	"internal/target/repo.go ensure":          "asks for the repo that another run has made",
	"internal/target/source.go foldersOf":     "goes up from folder to folder",
	"hub/internal/wire/transport.go Exchange": "follows redirects",
	"hub/stream.go dispatch":                  "goes on to the next range",
	"hub/stream.go Read":                      "reads on",
}

// TestTableOfRetries checks that docs/design.md lists exactly the functions that retry, with the
// bounds in the code.
func TestTableOfRetries(t *testing.T) {
	_, section, ok := strings.Cut(read(t, "docs/design.md"), "\n## What is repeated\n")
	if !ok {
		t.Fatal("docs/design.md has no section of that name")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	listed := map[string]bool{}
	quoted := regexp.MustCompile("`([^`]+)`")
	for row := range strings.Lines(section) {
		names := quoted.FindAllStringSubmatch(row, -1)
		if !strings.HasPrefix(row, "| ") || len(names) < 2 {
			continue
		}
		file, function := names[0][1], names[1][1]
		if !hasFunction(t, path.Dir(file), function) {
			t.Errorf("%s has no function %s", file, function)
		}
		listed[file+" "+function] = true
		for _, bound := range names[2:] {
			if name, value, ok := strings.Cut(bound[1], " = "); ok && constant(t, path.Dir(file), name) != value {
				t.Errorf("%s: the code has not %s", file, bound[1])
			}
		}
	}
	found := retries(t)
	for _, where := range found {
		if !listed[where] && notRetries[where] == "" {
			t.Errorf("%s does again what failed: add it to the table in docs/design.md, or better, let a loop that is there do it", where)
		}
	}
	for where := range listed {
		if !slices.Contains(found, where) {
			t.Errorf("docs/design.md: %s repeats nothing", where)
		}
	}
	for where := range notRetries {
		if !slices.Contains(found, where) {
			t.Errorf("%s doesn't look like a loop that retries", where)
		}
	}
	if len(listed) < 5 || len(listed) > 13 {
		t.Errorf("%d rows", len(listed))
	}
}

// retries finds the functions of the product that may do again what failed, as "file function".
func retries(t *testing.T) (found []string) {
	t.Helper()
	for dir, files := range goFiles(t) {
		if strings.HasPrefix(dir, "internal/hubtest") || strings.HasPrefix(dir, "internal/testing/") {
			continue // for tests
		}
		for _, f := range files {
			for _, d := range parsed(t, f).Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && !f.test && fn.Body != nil && mayRepeat(fn) {
					found = append(found, f.path+" "+fn.Name.Name)
				}
			}
		}
	}
	return found
}

// mayRepeat reports whether a loop of a function asks if all went well or which error it was, or the
// same call that can fail stands in the function twice.
func mayRepeat(fn *ast.FuncDecl) bool {
	found, calls := false, map[string]bool{}
	ast.Inspect(fn, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ForStmt:
			found = found || asksForError(n.Body)
		case *ast.RangeStmt: // over a number
			found = found || n.Key == nil && asksForError(n.Body)
		case *ast.AssignStmt:
			if last := source(n.Lhs[len(n.Lhs)-1]); last == "err" && len(n.Rhs) == 1 {
				found = found || calls[source(n.Rhs[0])] && isCall(n.Rhs[0])
				calls[source(n.Rhs[0])] = true
			}
		case *ast.ReturnStmt:
			found = found || len(n.Results) == 1 && calls[source(n.Results[0])] && isCall(n.Results[0])
		}
		return true
	})
	return found
}

func isCall(n ast.Expr) bool {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return false
	}
	_, plain := call.Fun.(*ast.Ident)
	return plain || len(call.Args) > 0 // a method without arguments goes on
}

func asksForError(body *ast.BlockStmt) (found bool) {
	ast.Inspect(body, func(n ast.Node) bool {
		if i, ok := n.(*ast.IfStmt); ok {
			found = found || strings.Contains(source(i.Cond), "err == nil") || strings.Contains(source(i.Cond), "errors.Is(err")
		}
		return true
	})
	return found
}

// source is an expression as the code has it, on one line.
func source(n ast.Expr) string {
	var b bytes.Buffer
	_ = printer.Fprint(&b, token.NewFileSet(), n)
	return strings.Join(strings.Fields(b.String()), " ")
}

// constant returns the value of a constant of a package, as the code has it.
func constant(t *testing.T, dir, name string) (value string) {
	t.Helper()
	for _, f := range goFiles(t)[dir] {
		ast.Inspect(parsed(t, f), func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok && spec.Names[0].Name == name && len(spec.Values) == 1 {
				value = source(spec.Values[0])
			}
			return true
		})
	}
	return value
}
