package safetensors_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/df11-convert/df11-convert/internal/safetensors"
)

func TestNewHeaderRefuses(t *testing.T) {
	u8 := func(name string, shape ...int64) safetensors.Entry {
		return safetensors.Entry{Name: name, DType: "U8", Shape: shape}
	}
	two := []safetensors.MetadataEntry{{Key: "a"}, {Key: "b"}}
	tests := []struct {
		metadata []safetensors.MetadataEntry
		entries  []safetensors.Entry
		kind     safetensors.Kind
	}{
		{two, nil, safetensors.ErrUnknown},
		{[]safetensors.MetadataEntry{{Key: "\xff"}}, nil, safetensors.ErrNotUTF8},
		{nil, []safetensors.Entry{u8("a"), u8("b"), u8("a")}, safetensors.ErrDuplicate},
		{nil, []safetensors.Entry{u8("__metadata__")}, safetensors.ErrSyntax},
		{nil, []safetensors.Entry{u8("\xc3")}, safetensors.ErrNotUTF8},
		{nil, []safetensors.Entry{u8("a", -1)}, safetensors.ErrNumber},
		{nil, []safetensors.Entry{{Name: "a", DType: "u8"}}, safetensors.ErrDType},
		{nil, []safetensors.Entry{{Name: "a", DType: "F6_E2M3", Shape: []int64{2}}}, safetensors.ErrPartialByte},
		{nil, []safetensors.Entry{u8("a", 1<<60), u8("b", 1<<60), u8("c", 1<<60), u8("d", 1<<60), u8("e", 1<<60),
			u8("f", 1<<60), u8("g", 1<<60), u8("h", 1<<60)}, safetensors.ErrOverflow},
		{nil, []safetensors.Entry{u8("a", 1<<40, 1<<40)}, safetensors.ErrOverflow},
	}
	for i, tt := range tests {
		if _, err := safetensors.NewHeader(tt.metadata, tt.entries); !errors.Is(err, tt.kind) {
			t.Errorf("case %d: got %v, want %q", i, err, tt.kind)
		}
	}
}

// TestLayoutOrder checks the descending enum order of all types (docs/format.md §11), and the bytes
// of four elements.
func TestLayoutOrder(t *testing.T) {
	want := []string{"U64", "I64", "F64", "C64", "F32", "U32", "I32", "BF16", "F16", "U16", "I16", "F8_E5M2FNUZ",
		"F8_E4M3FNUZ", "F8_E8M0", "F8_E4M3", "F8_E5M2", "I8", "U8", "F6_E3M2", "F6_E2M3", "F4", "BOOL"}
	nBytes := []int64{32, 32, 32, 32, 16, 16, 16, 8, 8, 8, 8, 4, 4, 4, 4, 4, 4, 4, 3, 3, 2, 4}
	var entries []safetensors.Entry
	for _, d := range want {
		entries = append(entries, safetensors.Entry{Name: "x." + d, DType: safetensors.DType(d), Shape: []int64{4}})
	}
	slices.Reverse(entries)
	l, err := safetensors.NewHeader(nil, entries)
	must(t, err)
	for i, d := range want {
		if x := l.Tensors[i]; string(x.DType) != d || x.NBytes() != nBytes[i] {
			t.Errorf("place %d holds %s of %d bytes, want %s of %d", i, x.DType, x.NBytes(), d, nBytes[i])
		}
	}
}
