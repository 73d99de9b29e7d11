package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"go/types"
	"math"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/df11-convert/df11-convert/encoder"
	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/pipeline"
	"github.com/df11-convert/df11-convert/verify"
)

// callable are the functions of the four packages, and a value of each type with methods.
func callable(t *testing.T) map[string][]any {
	client, err := hub.New(hub.Options{Connection: hub.Connection{Offline: true}})
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]any{
		"encoder": {encoder.ArrayNames, encoder.CheckArray, encoder.IsArrayName, encoder.NewCounter, encoder.CountExponents, encoder.Tables,
			new(encoder.Counter), (*encoder.Counter)(nil), new(encoder.Unit), (*encoder.Unit)(nil),
			encoder.Counts{}, new(encoder.UnsupportedError)},
		"verify": {verify.ArrayNames, verify.ArraysAt, verify.Open, verify.OpenGPU, new(verify.Unit),
			(*verify.Unit)(nil), new(verify.GPU), (*verify.GPU)(nil), new(verify.MismatchError),
			new(verify.StructureError)},
		"hub": {hub.Away, hub.Brief, hub.Culprit, hub.Environ, hub.Hint, hub.New, hub.NewHash, hub.NewGovernor,
			hub.DeleteOp, hub.FileOp, hub.LFSOp, client, new(hub.EndpointError), new(hub.Error),
			hub.FileInfo{}, hub.FileRef{}, hub.Op{}, new(hub.Publisher), new(hub.RepoInfo),
			new(hub.WitnessError), hub.Options{}, hub.Connection{}},
		"pipeline": {pipeline.AudienceOf, pipeline.Convert, pipeline.Decode, pipeline.Inspect,
			pipeline.Plan, pipeline.Status, pipeline.Verify, pipeline.ErrorOf,
			pipeline.Kinds, pipeline.Levels, pipeline.ForReaders, pipeline.Licenses, pipeline.Equality{}, new(pipeline.Error),
			pipeline.Fit{}, pipeline.Kind(""), new(pipeline.Options), pipeline.OtherFile{},
			pipeline.Stage{}},
	}
}

// TestNothingPanics calls every exported function and method of the four packages with zero values
// and odd numbers. Two things are the caller's to get right, as in the standard library: a context
// isn't nil, and a hub.Client comes from hub.New.
func TestNothingPanics(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"HF_HOME", "XDG_CACHE_HOME"} {
		t.Setenv(name, t.TempDir())
	}
	t.Setenv("HF_HUB_OFFLINE", "1")
	calls := 0
	for _, list := range callable(t) {
		for _, x := range list {
			v := reflect.ValueOf(x)
			if v.Kind() == reflect.Func {
				calls += callOddly(t, fmt.Sprint(v.Type()), v)
				continue
			}
			for i := range v.NumMethod() {
				if v.Type().Method(i).Name == "Format" { // only package fmt calls it
					_ = fmt.Sprintf("%v %+v %#v", x, x, x)
					continue
				}
				at := fmt.Sprintf("%s.%s, nil: %t", v.Type(), v.Type().Method(i).Name,
					v.Kind() == reflect.Pointer && v.IsNil())
				calls += callOddly(t, at, v.Method(i))
			}
		}
	}
	if calls < 500 {
		t.Errorf("only %d calls were made", calls)
	}
}

// callOddly calls a function with each odd value of each parameter, the others being zero, and with
// odd values for all of them.
func callOddly(t *testing.T, at string, f reflect.Value) (calls int) {
	const most = 6
	for which := range f.Type().NumIn() + 1 {
		for k := range most {
			args := make([]reflect.Value, f.Type().NumIn())
			for i := range args {
				values := odd(t, f.Type().In(i))
				args[i] = values[0]
				if i == which || which == len(args) {
					args[i] = values[k%len(values)]
				}
			}
			calls++
			func() {
				defer func() {
					if r := recover(); r != nil {
						t.Errorf("%s%v: panic: %v", at, args, r)
					}
				}()
				began := time.Now()
				if f.Type().IsVariadic() {
					f.CallSlice(args)
				} else {
					f.Call(args)
				}
				if d := time.Since(began); d > time.Minute {
					t.Errorf("%s%v took %s", at, args, d)
				}
			}()
		}
	}
	return calls
}

// odd returns values that no one means, the zero value first.
func odd(t *testing.T, typ reflect.Type) []reflect.Value {
	if typ == reflect.TypeFor[context.Context]() {
		return []reflect.Value{reflect.ValueOf(t.Context())}
	}
	values := []reflect.Value{reflect.Zero(typ)}
	add := func(x any) { values = append(values, reflect.ValueOf(x).Convert(typ)) }
	switch typ.Kind() {
	case reflect.Int, reflect.Int64:
		if typ == reflect.TypeFor[time.Duration]() {
			add(-1)
			return values
		}
		for _, n := range []int64{-1, 1, -50, 1 << 30, math.MinInt64} {
			add(n)
		}
	case reflect.String:
		for _, s := range []string{"\x00", "-", "a/b", "luts", "main"} {
			add(s)
		}
	case reflect.Slice:
		for _, one := range odd(t, typ.Elem()) {
			values = append(values, reflect.Append(reflect.Zero(typ), one))
		}
	case reflect.Struct:
		for k := 1; k < 4; k++ {
			s := reflect.New(typ).Elem()
			for i := range s.NumField() {
				if f := s.Field(i); f.CanSet() && f.Kind() != reflect.Interface && f.Kind() != reflect.Pointer {
					values := odd(t, f.Type())
					f.Set(values[k%len(values)])
				}
			}
			values = append(values, s)
		}
	case reflect.Map:
		values = append(values, reflect.MakeMap(typ))
	case reflect.Pointer:
		values = append(values, reflect.New(typ.Elem()))
	case reflect.Interface:
		if typ == reflect.TypeFor[error]() {
			values = append(values, reflect.ValueOf(errors.New("odd")), reflect.ValueOf(&hub.Error{}),
				reflect.ValueOf(&pipeline.Error{}), reflect.ValueOf(hub.ErrGated))
		}
	}
	return values
}

// TestNothingPanicsIsComplete checks that TestNothingPanics has every function, and every type with
// methods.
func TestNothingPanicsIsComplete(t *testing.T) {
	load := exportData(t, "./encoder", "./verify", "./hub", "./pipeline")
	for name, list := range callable(t) {
		p, err := load.Import(module + name)
		if err != nil {
			t.Fatal(err)
		}
		has := map[string]bool{}
		for _, x := range list {
			typ := reflect.TypeOf(x)
			if typ.Kind() == reflect.Func {
				full := runtime.FuncForPC(reflect.ValueOf(x).Pointer()).Name()
				has[full[strings.LastIndex(full, ".")+1:]] = true
			}
			if typ.Kind() == reflect.Pointer {
				typ = typ.Elem()
			}
			has[typ.Name()] = true
		}
		for _, n := range p.Scope().Names() {
			o := p.Scope().Lookup(n)
			if !o.Exported() {
				continue
			}
			if _, ok := o.(*types.Func); ok && !has[n] {
				t.Errorf("%s.%s isn't called", name, n)
			}
			if typ, ok := o.(*types.TypeName); ok && !types.IsInterface(typ.Type()) && !has[n] {
				if methods := types.NewMethodSet(types.NewPointer(typ.Type())); methods.Len() > 0 && owns(typ) {
					t.Errorf("%s.%s isn't called", name, n)
				}
			}
		}
	}
}

// owns reports whether a type has exported methods that it doesn't get from a field.
func owns(o *types.TypeName) bool {
	n, ok := o.Type().(*types.Named)
	for i := 0; ok && i < n.NumMethods(); i++ {
		if n.Method(i).Exported() {
			return true
		}
	}
	return false
}
