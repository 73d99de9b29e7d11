package verify

import "fmt"

// StructureError says that no encoder writes such an array: the file is at fault, whatever the
// source is.
type StructureError struct {
	Array string // stored name, e.g. "gaps" (docs/format.md §8)
	// a byte, bit, window or entry of the array, as posWord says; -1 when the array as a whole is
	// meant
	Pos    int64
	Reason string
}

// posWord names what StructureError.Pos counts.
var posWord = map[string]string{
	arrayLUTs:            "byte",
	arrayEncodedExponent: "bit",
	arraySignMantissa:    "byte",
	arrayOutputPositions: "entry",
	arrayGaps:            "window",
	arraySplitPositions:  "entry",
}

func (e *StructureError) Error() string {
	if e.Pos < 0 {
		return e.Array + ": " + e.Reason
	}
	return fmt.Sprintf("%s, %s %d: %s", e.Array, posWord[e.Array], e.Pos, e.Reason)
}

func badArray(array, format string, args ...any) *StructureError {
	return badAt(array, -1, format, args...)
}

func badAt(array string, pos int64, format string, args ...any) *StructureError {
	return &StructureError{Array: array, Pos: pos, Reason: fmt.Sprintf(format, args...)}
}

// MismatchError names the first weight of a unit whose decoded bits differ from the source.
type MismatchError struct {
	Unit   string // CompareOptions.Unit
	Tensor string // CompareOptions.Names entry, or "#i" when none were given
	Elem   int64  // element within Tensor
	Got    uint16 // BF16 bits that the stored arrays decode to
	Want   uint16 // BF16 bits of the source

	// Cause is the fault in the chunk's structure that explains the wrong bits; nil when only the
	// value is wrong.
	Cause *StructureError
}

func (e *MismatchError) Error() string {
	s := fmt.Sprintf("tensor %s, element %d: decoded %#04x, source has %#04x", e.Tensor, e.Elem,
		e.Got, e.Want)
	if e.Unit != "" {
		s = "module " + e.Unit + ", " + s
	}
	if e.Cause != nil {
		s += " (" + e.Cause.Error() + ")"
	}
	return s
}

// Unwrap gives access to the structural cause, if there is one.
func (e *MismatchError) Unwrap() error {
	if e.Cause == nil {
		return nil
	}
	return e.Cause
}
