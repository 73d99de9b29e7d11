package pipeline_test

import (
	"bytes"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

const module = "github.com/df11-convert/df11-convert/"

// TestExportedTypesAreOwn checks that programs outside this module can name every type that the four
// packages export: no signature, field, or method leads to a type of an internal package, not even
// through an alias.
func TestExportedTypesAreOwn(t *testing.T) {
	load := exportData(t, "./encoder", "./verify", "./hub", "./pipeline")
	for _, name := range []string{"encoder", "verify", "hub", "pipeline"} {
		p, err := load.Import(module + name)
		if err != nil {
			t.Fatal(err)
		}
		w := walker{t: t, seen: map[types.Type]bool{}}
		for _, exported := range p.Scope().Names() {
			if o := p.Scope().Lookup(exported); o.Exported() {
				w.object(name+"."+exported, o)
			}
		}
		if w.n < 8 {
			t.Errorf("%s: only %d types were looked at", name, w.n)
		}
	}
}

// exportData returns an importer for packages of this module.
func exportData(t *testing.T, packages ...string) types.Importer {
	t.Helper()
	list := exec.Command("go", append([]string{"list", "-export", "-deps", "-f",
		"{{.ImportPath}} {{.Export}}"}, packages...)...)
	list.Dir = ".."
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for line := range bytes.Lines(out) {
		path, file, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
		files[path] = file
	}
	return importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		if files[path] == "" {
			return nil, fmt.Errorf("no export data of %s", path)
		}
		return os.Open(files[path])
	})
}

// A walker follows everything that a program outside can reach from an object.
type walker struct {
	t    *testing.T
	seen map[types.Type]bool
	n    int
}

func (w *walker) object(at string, o types.Object) {
	if name, ok := o.(*types.TypeName); ok && !name.IsAlias() {
		w.named(at, name.Type().(*types.Named))
		return
	}
	w.walk(at, o.Type())
}

// named follows the fields and methods of a type. All its methods count, promoted ones too.
func (w *walker) named(at string, n *types.Named) {
	if w.seen[n] {
		return
	}
	w.seen[n] = true
	w.n++
	w.walk(at, n.Underlying())
	methods := types.NewMethodSet(types.NewPointer(n))
	for i := range methods.Len() {
		if m := methods.At(i).Obj(); m.Exported() {
			w.walk(at+"."+m.Name(), m.Type())
		}
	}
}

func (w *walker) walk(at string, typ types.Type) {
	switch x := types.Unalias(typ).(type) {
	case *types.Named:
		o := x.Obj()
		switch {
		case o.Pkg() == nil || !strings.HasPrefix(o.Pkg().Path(), module):
		case strings.Contains(o.Pkg().Path(), "/internal/"), !o.Exported():
			w.t.Errorf("%s leads to %s, which no other program can name", at, x)
		default:
			w.named(at, x)
		}
		for arg := range x.TypeArgs().Types() {
			w.walk(at, arg)
		}
	case *types.Pointer:
		w.walk(at, x.Elem())
	case *types.Slice:
		w.walk(at, x.Elem())
	case *types.Array:
		w.walk(at, x.Elem())
	case *types.Chan:
		w.walk(at, x.Elem())
	case *types.Map:
		w.walk(at, x.Key())
		w.walk(at, x.Elem())
	case *types.Struct:
		for f := range x.Fields() {
			switch {
			case f.Exported():
				w.walk(at+"."+f.Name(), f.Type())
			case f.Embedded(): // its fields are promoted
				w.walk(at, f.Type().Underlying())
			}
		}
	case *types.Interface:
		for m := range x.Methods() {
			w.walk(at+"."+m.Name(), m.Type())
		}
	case *types.Signature:
		w.tuple(at, x.Params())
		w.tuple(at, x.Results())
	}
}

func (w *walker) tuple(at string, list *types.Tuple) {
	for v := range list.Variables() {
		w.walk(at, v.Type())
	}
}
