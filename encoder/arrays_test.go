package encoder

import (
	"reflect"
	"slices"
	"testing"
)

// The official loader goes by types and shapes, so the same bytes with another type or shape are
// wrong.
func TestCheckArray(t *testing.T) {
	for _, tt := range []struct {
		name, dtype string
		shape       []int64
		ok          bool
	}{
		{NameLUTs, "U8", []int64{2, 256}, true},
		{NameLUTs, "U8", []int64{18, 256}, true},
		{NameLUTs, "U8", []int64{1, 256}, false},
		{NameLUTs, "U8", []int64{19, 256}, false},
		{NameLUTs, "I8", []int64{4, 256}, false},
		{NameSignMantissa, "U8", []int64{4096}, true},
		{NameSignMantissa, "U8", []int64{0}, false},
		{NameEncodedExponent, "U8", nil, false},
		{NameOutputPositions, "U8", []int64{8}, true},
		{NameOutputPositions, "U8", []int64{9}, false},
		{NameOutputPositions, "I32", []int64{2}, false},
		{NameGaps, "U8", []int64{640}, true},
		{NameGaps, "U8", []int64{40}, false},
		{NameSplitPositions, "I64", []int64{0}, true},
		{NameSplitPositions, "U8", []int64{0}, false},
		{NameSplitPositions, "I64", []int64{0, 1}, false},
		{NameSplitPositions, "I64", []int64{-1}, false},
		{"nope", "U8", []int64{1}, false},
	} {
		if err := CheckArray(tt.name, tt.dtype, tt.shape); (err == nil) != tt.ok {
			t.Errorf("%s %s %v: %v", tt.name, tt.dtype, tt.shape, err)
		}
	}
}

// CheckArray accepts every array that Counts.Stored describes.
func TestStored(t *testing.T) {
	c := Counts{Rows: 4, Coded: 4097, Elems: 10_000, Marked: 1, Tensors: 3}
	var sizes []int64
	for i, s := range c.Stored() {
		if s.Name != ArrayNames()[i] || !IsArrayName(s.Name) || CheckArray(s.Name, s.DType, s.Shape) != nil {
			t.Errorf("%+v", s)
		}
		sizes = append(sizes, s.NBytes)
	}
	if want := []int64{1024, 4097, 10_000, 8, 640, 16}; !reflect.DeepEqual(sizes, want) {
		t.Errorf("got %v, want %v", sizes, want)
	}
	if IsArrayName("weight") || slices.Contains(ArrayNames(), "") {
		t.Error("IsArrayName accepts a name of no array")
	}
}
