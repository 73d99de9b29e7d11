package hub

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"testing"

	"github.com/df11-convert/df11-convert/hub/internal/wire"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// TestErrorsAreExported checks that every method of a Client that returns an error makes an *Error
// of that of a request: callers outside can't name any other.
func TestErrorsAreExported(t *testing.T) {
	files, err := filepath.Glob("*.go")
	world.Must(t, err)
	n := 0
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		world.Must(t, err)
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || !fn.Name.IsExported() || !isClient(fn.Recv) || !fails(fn.Type.Results) || fn.Body == nil || len(fn.Body.List) == 0 {
				continue
			}
			if n++; !defersExported(fn.Body.List[0]) && len(fn.Body.List) > 1 {
				t.Errorf("%s: %s doesn't begin with defer exported(&err)", file, fn.Name)
			}
		}
	}
	if n < 15 {
		t.Errorf("%d methods", n)
	}
}

func isClient(recv *ast.FieldList) bool {
	if recv == nil {
		return false
	}
	star, ok := recv.List[0].Type.(*ast.StarExpr)
	if !ok {
		return false
	}
	name, ok := star.X.(*ast.Ident)
	return ok && name.Name == "Client"
}

func fails(results *ast.FieldList) bool {
	if results == nil {
		return false
	}
	last, ok := results.List[len(results.List)-1].Type.(*ast.Ident)
	return ok && last.Name == "error"
}

func defersExported(first ast.Stmt) bool {
	d, ok := first.(*ast.DeferStmt)
	if !ok {
		return false
	}
	name, ok := d.Call.Fun.(*ast.Ident)
	return ok && name.Name == "exported"
}

// TestExported checks that an error keeps its text and its causes when it gets a name.
func TestExported(t *testing.T) {
	failure := &wire.Error{Op: "read a of b/c", Side: "source", Method: "GET", URL: "https://h/a", Status: 403, Code: "GatedRepo", Message: "no", RequestID: "r", TokenSource: "HF_TOKEN", Attempts: 2, Repo: "b/c", Endpoint: "https://h", Err: ErrGated}
	err := export(fmt.Errorf("outer: %w", failure))
	e, ok := errors.AsType[*Error](err)
	if !ok || err.Error() != "outer: "+failure.Error() || !errors.Is(err, ErrGated) || Hint(err) != Hint(failure) {
		t.Fatalf("%v", err)
	}
	if want := (Error{failure.Op, failure.Side, "GET", failure.URL, 403, failure.Code, "no", "r", "HF_TOKEN", 2, "b/c", "https://h", ErrGated, e.cause}); *e != want {
		t.Errorf("%+v, want %+v", *e, want)
	}
	if e.Brief() != failure.Brief() || e.Brief() == "" || !e.GaveUp() || e.Temporary() != failure.Temporary() {
		t.Errorf("%q, %v, %v", e.Brief(), e.GaveUp(), e.Temporary())
	}
	if again := export(fmt.Errorf("more: %w", err)); again.Error() != "more: "+err.Error() {
		t.Errorf("%v", again)
	}
	if other := errors.New("other"); !errors.Is(export(other), other) || wire.IsA[*Error](export(other)) || export(nil) != nil {
		t.Error("errors of no request change")
	}
	own := &Error{Op: failure.Op, Side: failure.Side, Method: "GET", URL: failure.URL, Status: 403, Message: "no", RequestID: "r", Attempts: 2, Err: ErrGated}
	if own.Error() != failure.Error() || !errors.Is(own, ErrGated) {
		t.Errorf("%v, want %v", own, failure)
	}
}
