package safetensors

import "fmt"

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

// rewrite is the advice for a header that is just as its writer wrote it: no copy is better.
const rewrite = "save the model again with the safetensors library, from a program that can read it; " +
	"if the file is on the Hub, tell its owner"

// hints says what to do about each kind. Only a file that is incomplete is worth fetching again.
var hints = map[Kind]string{
	ErrTooShort: "fetch the file again: it's incomplete; if the Hub's is too, tell its owner",
	ErrCut:      "fetch the file again: it's incomplete; if the Hub's is too, tell its owner",
	ErrText: "fetch the file from its own address: what was saved is an answer in words, such as a login " +
		"page or an error",
	ErrOverlap: "save each tensor with bytes of its own: leave out the copy of a tied one, or clone it " +
		"before saving",
	ErrHeaderLength: "check that it is a safetensors file: its first 8 bytes aren't the length of a header",
	ErrMemory:       "raise --memory, or leave it out",
	ErrLimit: "save the model in several files with shorter headers, or without what isn't a weight; " +
		"docs/format.md §16 has the limits",
}

// HeaderError says what is wrong with a header, and where. It wraps its [Kind].
type HeaderError struct {
	Kind   Kind
	Tensor string // name of the tensor; "" if the defect isn't in a tensor
	Detail string // the numbers or the position; "" if the kind says it all
	// the size of a file that ends with its last tensor, for ErrTrailing
	WholeSize int64
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
func (e *HeaderError) Hint() string {
	switch {
	case e.Kind == ErrTrailing:
		return fmt.Sprintf("cut a copy of the file behind its last tensor: truncate -s %d FILE",
			e.WholeSize)
	case e.Kind == ErrSyntax && e.Tensor == metadataKey:
		return "save the model again with strings as the values of its metadata, and with another name " +
			"for a tensor that is called so"
	case hints[e.Kind] != "":
		return hints[e.Kind]
	}
	return rewrite
}

func (e *HeaderError) Unwrap() error { return e.Kind }

// fail builds a HeaderError; format may be "".
func fail(k Kind, tensor, format string, args ...any) error {
	return &HeaderError{Kind: k, Tensor: tensor, Detail: fmt.Sprintf(format, args...)}
}
