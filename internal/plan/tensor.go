package plan

import (
	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// A Unit is one module that is compressed as a whole (docs/format.md §1).
type Unit struct {
	Path     string   // module path, in the output's names
	File     string   // output file that holds its tensors
	Pattern  int      // index in Plan.PatternDict
	Attrs    []Tensor // BF16 weights in encoding order, 2-D unless they're parameters
	Siblings []Tensor // other tensors of the module, copied unchanged into the same file
	// why DF11 can't hold it, as far as headers show: "too_large", "empty", or ""
	Unholdable string
}

// NElems returns the number of weights of the unit.
func (u Unit) NElems() int64 { return sum(u.Attrs, Tensor.NElems) }

// NBytes returns the bytes of the unit's weights in BF16: in a spool, and once they're decoded.
func (u Unit) NBytes() int64 { return 2 * u.NElems() }

// Sizes returns the number of weights of each attribute, in encoding order.
func (u Unit) Sizes() []int64 {
	sizes := make([]int64, len(u.Attrs))
	for i, t := range u.Attrs {
		sizes[i] = t.NElems()
	}
	return sizes
}

// A Tensor is a tensor of the source and the location of its bytes.
type Tensor struct {
	Name   string // name in the output
	Source string // name in the source
	// attribute of a unit that it is the weight of: "mlp.up_proj"; "" for a unit's own weight
	Attr string
	// a unit holds it, and it isn't the 2-D weight of a module (docs/format.md §17)
	Parameter bool
	// name in the output of the parameter that it's a slice of; "" if it's a whole tensor
	SliceOf string
	DType   safetensors.DType // type in the source
	Shape   []int64
	File    int   // index in Source.Weights
	Offset  int64 // first byte in that file
	Length  int64 // bytes in that file
	// F32 whose values must all be exact in BF16: the conversion takes the upper halves, and refuses
	// other values
	ExactF32 bool
}

// NElems returns the number of elements.
func (t Tensor) NElems() int64 { return safetensors.Tensor{Shape: t.Shape}.NElems() }

func (t Tensor) length() int64 { return t.Length }

// StoredDType returns the type of a plain tensor in the output: the source's, or BF16 for exact
// F32.
func (t Tensor) StoredDType() safetensors.DType {
	if t.ExactF32 {
		return safetensors.BF16
	}
	return t.DType
}

// SpoolBytes returns the size of the tensor in a spool and, if it's plain, in the output. F32 that
// is exact BF16 is narrowed before.
func (t Tensor) SpoolBytes() int64 {
	if t.ExactF32 {
		return t.Length / 2
	}
	return t.Length
}

// An OutputFile is one safetensors file of the output. For each unit it has the six tensors and the
// siblings, or the plain weights and the siblings if DF11 can't hold the unit. Then come the plain
// tensors.
type OutputFile struct {
	Path     string
	Units    []int // indices in Plan.Units
	Plain    []Tensor
	Metadata []safetensors.MetadataEntry
}

// A Skipped is a file of the source that isn't copied.
type Skipped struct {
	Path string `json:"path"`
	Why  string `json:"why"`
	// a reader of the source opens it
	Lost bool `json:"lost,omitempty"`
}

// An Alias is a tensor of the source that isn't stored, because the loader uses Of for it. The
// caller must compare the bytes of both, and refuse the model if they differ.
type Alias struct {
	Tensor Tensor // stored in the source, not in the output
	Of     Tensor // stored in the output
}

// sum adds up a number of each element.
func sum[T any](list []T, of func(T) int64) (n int64) {
	for _, x := range list {
		n += of(x)
	}
	return n
}
