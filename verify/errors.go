package verify

import "fmt"

// StructureError reports an array that no encoder writes. The file is wrong, no matter what the
// source is.
type StructureError struct {
	Array string // stored name, e.g. "gaps" (docs/format.md §8)
	// a byte, bit, window, or entry of the array (see posWord); -1 for the whole array
	Pos    int64
	Reason string
}

// posWord names what StructureError.Pos counts.
var posWord = map[string]string{
	NameLUTs:            "byte",
	NameEncodedExponent: "bit",
	NameSignMantissa:    "byte",
	NameOutputPositions: "entry",
	NameGaps:            "window",
	NameSplitPositions:  "entry",
}

func (e *StructureError) Error() string {
	if e.Pos < 0 {
		return e.Array + ": " + e.Reason
	}
	return fmt.Sprintf("%s, %s %d: %s", e.Array, posWord[e.Array], e.Pos, e.Reason)
}

// Subject returns "model": the DF11 model alone is wrong.
func (e *StructureError) Subject() string { return "model" }

func badArray(array, format string, args ...any) *StructureError {
	return badAt(array, -1, format, args...)
}

func badAt(array string, pos int64, format string, args ...any) *StructureError {
	return &StructureError{Array: array, Pos: pos, Reason: fmt.Sprintf(format, args...)}
}

// MismatchError reports the first weight of a unit that decodes to other bits than the source has.
type MismatchError struct {
	Unit   string // CompareOptions.Unit
	Tensor string // entry of CompareOptions.Names, or "#i" without names
	Elem   int64  // index within Tensor
	Got    uint16 // BF16 bits decoded from the stored arrays
	Want   uint16 // BF16 bits of the source
}

func (e *MismatchError) Error() string {
	module := ""
	if e.Unit != "" {
		module = "module " + e.Unit + ", "
	}
	return fmt.Sprintf("%stensor %s, element %d: decoded %#04x, source has %#04x", module, e.Tensor,
		e.Elem, e.Got, e.Want)
}

// Subject returns "pair": the DF11 model isn't this source's.
func (e *MismatchError) Subject() string { return "pair" }
