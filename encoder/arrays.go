package encoder

import (
	"fmt"
	"io"
	"slices"
)

// A unit's arrays are stored under these names, after the module's path (docs/format.md §8).
const (
	NameLUTs            = "luts"
	NameEncodedExponent = "encoded_exponent"
	NameSignMantissa    = "sign_mantissa"
	NameOutputPositions = "output_positions"
	NameGaps            = "gaps"
	NameSplitPositions  = "split_positions"
)

// Counts hold the numbers that decide the shapes of a unit's arrays.
type Counts struct {
	Rows    int64 // of luts
	Coded   int64 // bytes of encoded_exponent: B
	Elems   int64 // weights: N
	Marked  int64 // chunks with an output position
	Tensors int64 // tensors in the unit
}

// Chunks returns C (docs/format.md §1).
func (c Counts) Chunks() int64 { return (c.Coded + chunkBytes - 1) / chunkBytes }

// array describes one of the arrays that every unit is stored as.
type array struct {
	name, dtype string
	// the length of a list is a multiple of this; 0 for the other two arrays
	multiple int64
}

// arrays lists the six arrays (docs/format.md §8).
var arrays = [...]array{
	{NameLUTs, "U8", 0},
	{NameEncodedExponent, "U8", 1},
	{NameSignMantissa, "U8", 1},
	{NameOutputPositions, "U8", 4},
	{NameGaps, "U8", gapBytes},
	{NameSplitPositions, "I64", 0},
}

// fits reports whether an array of some unit can have this shape.
func (a array) fits(shape []int64) bool {
	if a.name == NameLUTs {
		return len(shape) == 2 && 2 <= shape[0] && shape[0] <= maxLUTRows && shape[1] == lutSlots
	}
	if len(shape) != 1 {
		return false
	}
	if a.name == NameSplitPositions {
		return shape[0] >= 0
	}
	return shape[0] > 0 && shape[0]%a.multiple == 0
}

// StoredTensor describes one of a unit's six arrays (docs/format.md §8).
type StoredTensor struct {
	Name   string  // NameLUTs and so on, without the module's path
	DType  string  // safetensors dtype: "U8", or "I64" for split_positions
	Shape  []int64 // in elements of DType
	NBytes int64   // stored bytes; 0 for split_positions of a single tensor
}

// Stored describes the six arrays of a unit with these counts.
func (c Counts) Stored() []StoredTensor {
	shapes := [len(arrays)][]int64{{c.Rows, lutSlots}, {c.Coded}, {c.Elems}, {4 * (c.Marked + 1)},
		{gapBytes * c.Chunks()}, {c.Tensors - 1}}
	var list []StoredTensor
	for i, a := range arrays {
		t := StoredTensor{a.name, a.dtype, shapes[i], 1}
		if a.dtype == "I64" {
			t.NBytes = 8
		}
		for _, d := range t.Shape {
			t.NBytes *= d
		}
		list = append(list, t)
	}
	return list
}

// ArrayNames lists the names of the six arrays.
func ArrayNames() []string {
	var names []string
	for _, a := range arrays {
		names = append(names, a.name)
	}
	return names
}

// IsArrayName reports whether name is the name of one of the six arrays.
func IsArrayName(name string) bool { return slices.Contains(ArrayNames(), name) }

// CheckArray checks that the official loader accepts an array's type and shape. The official kernel
// computes with the number of rows of luts and with the numbers of elements of sign_mantissa and
// encoded_exponent, and never checks them.
func CheckArray(name, dtype string, shape []int64) error {
	i := slices.IndexFunc(arrays[:], func(a array) bool { return a.name == name })
	if i < 0 {
		return fmt.Errorf("%q isn't the name of an array", name)
	}
	if a := arrays[i]; a.dtype != dtype || !a.fits(shape) {
		return fmt.Errorf("%s %v, which the official loader doesn't take", dtype, shape)
	}
	return nil
}

// Dst returns the writer of one of the six arrays. Offset 0 is the array's first byte. Encode
// writes no byte twice and none beyond StoredTensor.NBytes. Dst and WriteAt must be safe for
// concurrent calls on ranges that don't overlap, as WriteAt is for *os.File. WriteAt borrows the
// bytes until it returns.
type Dst func(name string) io.WriterAt

func (dst Dst) write(name string, p []byte, off int64) error {
	if len(p) == 0 {
		return nil
	}
	w := dst(name)
	if w == nil {
		return fmt.Errorf("write %s: there is no writer", name)
	}
	n, err := w.WriteAt(p, off)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}
