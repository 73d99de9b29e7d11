package safetensors

import (
	"math"
	"slices"
)

// DType is the element type of a tensor, spelled as in a header: "BF16", "F32", "U8", "I64",
// "F8_E4M3", ….
type DType string

// The types this module names. The table below lists all types of the format.
const (
	BF16 DType = "BF16"
	F32  DType = "F32"
	U8   DType = "U8"
	I64  DType = "I64"
)

type elemType struct {
	name  DType
	nBits int64
}

// dtypes lists every type of the official crate in the order of its enum. Writers sort by it,
// descending (docs/format.md §11).
var dtypes = [...]elemType{
	{"BOOL", 8},
	{"F4", 4},
	{"F6_E2M3", 6},
	{"F6_E3M2", 6},
	{"U8", 8},
	{"I8", 8},
	{"F8_E5M2", 8},
	{"F8_E4M3", 8},
	{"F8_E8M0", 8},
	{"F8_E4M3FNUZ", 8},
	{"F8_E5M2FNUZ", 8},
	{"I16", 16},
	{"U16", 16},
	{"F16", 16},
	{"BF16", 16},
	{"I32", 32},
	{"U32", 32},
	{"F32", 32},
	{"C64", 64},
	{"F64", 64},
	{"I64", 64},
	{"U64", 64},
}

// rank returns d's position in the crate's enum, or -1.
func (d DType) rank() int {
	return slices.IndexFunc(dtypes[:], func(t elemType) bool { return t.name == d })
}

// nBytes returns the size of a tensor of type d and the given shape, and "" as the kind if the
// shape is valid. As in the official crate, any intermediate product that leaves int64 is an
// overflow, even if a later dimension is zero.
func (d DType) nBytes(shape []int64) (int64, Kind) {
	rank, n := d.rank(), int64(1)
	if rank < 0 {
		return 0, ErrDType
	}
	for _, dim := range shape {
		if dim < 0 {
			return 0, ErrNumber
		}
		if dim != 0 && n > math.MaxInt64/dim {
			return 0, ErrOverflow
		}
		n *= dim
	}
	nBits := dtypes[rank].nBits
	if n > math.MaxInt64/nBits {
		return 0, ErrOverflow
	}
	if n*nBits%8 != 0 {
		return 0, ErrPartialByte
	}
	return n * nBits / 8, ""
}
