package safetensors

import (
	"cmp"
	"fmt"

	"github.com/df11-convert/df11-convert/internal/hint"
)

// Kind is one way in which a header can be wrong. Test for it with [errors.Is].
type Kind string

func (k Kind) Error() string { return string(k) }

// The defects that a header can have.
const (
	ErrTooShort     = Kind("file is too short for a safetensors header")
	ErrHeaderLength = Kind("header length is out of range")
	ErrNotUTF8      = Kind("header is not valid UTF-8")
	ErrSyntax       = Kind("header is not the JSON that the format requires")
	ErrDuplicate    = Kind("duplicate key")
	ErrMissing      = Kind("missing member")
	ErrUnknown      = Kind("unknown member")
	ErrNumber       = Kind("not a number between 0 and 2^63-1")
	ErrDType        = Kind("unknown dtype")
	ErrOverflow     = Kind("shape overflows")
	ErrPartialByte  = Kind("tensor does not end on a byte")
	ErrOffsets      = Kind("offsets are out of order or out of the file")
	ErrSize         = Kind("data size does not match dtype and shape")
	ErrOverlap      = Kind("tensors overlap")
	ErrHole         = Kind("hole in the data")
	ErrLimit        = Kind("over this program's limits")
	ErrMemory       = Kind("over the memory budget")
	ErrCut          = Kind("file is cut short")
	ErrTrailing     = Kind("file goes on after the last tensor")
	ErrText         = Kind("file is a text, not weights")
)

// hints says what to do about each kind. The file is just as its writer wrote it in all others, so
// no other copy is better.
var hints = map[Kind]hint.Hint{
	ErrTooShort: hint.HeaderCut, ErrCut: hint.HeaderCut, ErrText: hint.HeaderText,
	ErrTrailing: hint.HeaderTail, ErrOverlap: hint.HeaderOverlap, ErrHeaderLength: hint.HeaderLength,
	ErrMemory: hint.MemoryBudget, ErrLimit: hint.HeaderLimit,
}

// HeaderError says what is wrong with a header, and where. It wraps its [Kind].
type HeaderError struct {
	Kind   Kind
	Tensor string // name of the tensor; "" if the defect isn't in a tensor
	Detail string // the numbers or the position; "" if the kind says it all
}

func (e *HeaderError) Error() string {
	s := "safetensors header: "
	if e.Tensor != "" {
		s += fmt.Sprintf("tensor %.100q: ", e.Tensor)
	}
	s += string(e.Kind)
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	return s
}

// Hint returns what you can do about the header.
func (e *HeaderError) Hint() hint.Hint {
	if e.Kind == ErrSyntax && e.Tensor == metadataKey {
		return hint.HeaderMetadata
	}
	return cmp.Or(hints[e.Kind], hint.HeaderAsWritten)
}

func (e *HeaderError) Unwrap() error { return e.Kind }

// fail builds a HeaderError; format may be "".
func fail(k Kind, tensor, format string, args ...any) error {
	return &HeaderError{Kind: k, Tensor: tensor, Detail: fmt.Sprintf(format, args...)}
}
