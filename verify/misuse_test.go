package verify

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/df11-convert/df11-convert/internal/testing/plain"
)

// TestMisuseIsAnError calls the exported functions with what no file holds: the answer is an error.
func TestMisuseIsAnError(t *testing.T) {
	good := encode(plain.Normal(10_000, 3))
	for name, a := range map[string]Arrays{
		"nil": nil, "none": {}, "nothing in them": ArraysAt(func(string) *io.SectionReader { return nil }),
		"less than nothing": ArraysAt(func(string) *io.SectionReader { return io.NewSectionReader(bytes.NewReader(nil), 9, -8) }),
	} {
		for _, sizes := range [][]int64{nil, {}, {1}, {-1, 2}} {
			if structure := (*StructureError)(nil); !errors.As(second(Open(a, sizes)), &structure) {
				t.Errorf("%s, sizes %d: no structure error", name, sizes)
			}
		}
	}
	for _, missing := range arrayNames {
		a := good.arrays()
		delete(a, missing)
		if structure := (*StructureError)(nil); !errors.As(second(Open(a, nil)), &structure) || structure.Array != missing {
			t.Errorf("without %s: %v", missing, structure)
		}
	}
	u, err := Open(good.arrays(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, sizes := range [][]int64{{}, {u.NElems() + 1}, {-1, u.NElems() + 1}, {0, u.NElems()}} {
		if _, err := Open(good.arrays(), sizes); err == nil {
			t.Errorf("sizes %d are accepted", sizes)
		}
	}
	if err := u.Compare(t.Context(), nil, CompareOptions{Workers: -1}); err == nil {
		t.Error("compared with nothing")
	}
	if err := u.Compare(t.Context(), bytes.NewReader(nil), CompareOptions{}); err == nil {
		t.Error("compared with too little")
	}
	for _, x := range []struct{ elem, n, bytes int64 }{{-1, 1, 2}, {0, -1, 0}, {0, 1, 1}, {u.NElems(), 1, 2}, {1, u.NElems(), 2 * u.NElems()}, {1 << 62, 1 << 62, 0}} {
		if err := u.DecodeRange(t.Context(), x.elem, x.n, make([]byte, x.bytes)); err == nil {
			t.Errorf("%+v is accepted", x)
		}
	}
	for _, elem := range []int64{0, 1, u.NElems()} {
		if err := u.DecodeRange(t.Context(), elem, 0, nil); err != nil {
			t.Errorf("nothing at %d: %v", elem, err)
		}
	}
	var closed Unit
	if _, err := closed.CheckUnread(); err == nil {
		t.Error("a unit that isn't open can be checked")
	}
	if closed.Compare(t.Context(), bytes.NewReader(nil), CompareOptions{Strict: true}) == nil || closed.DecodeRange(t.Context(), 0, 1, make([]byte, 2)) == nil ||
		closed.DecodeRange(t.Context(), 0, 0, nil) != nil || closed.NElems() != 0 || len(closed.Sizes()) != 0 {
		t.Error("a unit that isn't open can be read")
	}
	for name, g := range map[string]*GPU{"no GPU": nil, "a GPU that isn't open": {}} {
		if err := g.Compare(t.Context(), u, bytes.NewReader(nil), CompareOptions{}); !errors.Is(err, ErrNoGPU) {
			t.Errorf("%s: %v", name, err)
		}
		if decoder, device := g.Describe(); decoder+device != "" || g.Host() != 0 {
			t.Errorf("%s: %s, %s, %d", name, decoder, device, g.Host())
		}
		g.Close()
	}
}

func second[T any](_ T, err error) error { return err }

// writes takes n bytes of each Write, and says nothing.
type writes int

func (n writes) Write(p []byte) (int, error) { return min(int(n), len(p)), nil }

// TestWriteRangeMisuse checks that WriteRange never says that it has written what it hasn't.
func TestWriteRangeMisuse(t *testing.T) {
	u, err := Open(encode(plain.Normal(10_000, 3)).arrays(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct{ elem, n int64 }{{-1, 1}, {0, -1}, {-99, 0}, {u.NElems(), 1}, {1, u.NElems()}, {1 << 62, 1 << 62}} {
		if err := u.WriteRange(t.Context(), io.Discard, x.elem, x.n, 1); err == nil {
			t.Errorf("%+v is accepted", x)
		}
	}
	for _, n := range []writes{0, 1, 19_999} {
		if err := u.WriteRange(t.Context(), n, 0, 10_000, 1); !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("a writer that takes %d bytes: %v", n, err)
		}
	}
	if err := u.WriteRange(t.Context(), nil, 0, 10, 1); err == nil {
		t.Error("written to nothing")
	}
	began := time.Now()
	if err := u.WriteRange(t.Context(), io.Discard, 0, 10_000, 1<<30); err != nil || time.Since(began) > time.Minute {
		t.Errorf("very many workers: %v, %s", err, time.Since(began))
	}
	var none *Unit
	if none.WriteRange(t.Context(), io.Discard, 0, 1, 1) == nil || none.Compare(t.Context(), bytes.NewReader(nil), CompareOptions{}) == nil {
		t.Error("no unit can be read")
	}
}

// TestErrorsWithoutNames checks that errors leave out what the options don't name.
func TestErrorsWithoutNames(t *testing.T) {
	u, err := Open(encode(plain.Normal(10_000, 3)).arrays(), nil)
	if err != nil {
		t.Fatal(err)
	}
	mismatch := u.Compare(t.Context(), bytes.NewReader(make([]byte, 20_000)), CompareOptions{})
	short := u.Compare(t.Context(), bytes.NewReader(nil), CompareOptions{})
	for _, err := range []error{mismatch, short} {
		if err == nil || strings.Contains(err.Error(), "module") {
			t.Error(err)
		}
	}
}
