package fetch

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// A File is one source file, and how it is read.
type File struct {
	model.File
	Segments []spans.Segment
	// ByRange: only tensors that are still needed are read, under no hash. Else all of the file is, from its first byte to its last.
	ByRange bool
}

// Files lists the source files of a model, with what the outputs want of each.
func Files(m *model.Model, outputs []*spans.Output) []*File {
	var files []*File
	segments := spans.Segments(outputs, len(m.Listing.Weights))
	for i, w := range m.Files() {
		files = append(files, &File{File: w, Segments: segments[i]})
	}
	return files
}

// Delivers reports whether one of the file's deliveries fits.
func (f *File) Delivers(fits func(spans.Delivery) bool) bool {
	return slices.ContainsFunc(f.Segments, func(s spans.Segment) bool { return slices.ContainsFunc(s.To, fits) })
}

// HeaderError says that a source file does not begin with the header that the plan was made from, so that the plan may
// be wrong although the file's sha256 is right.
type HeaderError struct{ File string }

func (e *HeaderError) Error() string {
	return fmt.Sprintf("source file %s: its header is not the one that the plan was made from; it was read wrong or has changed", e.File)
}

// checkHeader compares what p, read at off, holds of the header.
func (f *File) checkHeader(off int64, p []byte) error {
	const start = 8 // the header follows its length
	from, end := max(off, start), min(off+int64(len(p)), f.Header.DataStart())
	if from < end && !bytes.Equal(p[from-off:end-off], f.Header.Raw[from-start:end-start]) {
		return &HeaderError{f.Path}
	}
	return nil
}

// Error says which source file could not be read. Err names it.
type Error struct {
	File string
	Err  error
}

func (e *Error) Error() string { return e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }
