package fetch

import (
	"bytes"
	"fmt"
	"slices"
	"sync"

	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// A File is one source file, and what a run knows of it.
type File struct {
	Index    int
	Path     string
	Size     int64
	Want     string // published sha256, "" if there is none
	Segments []spans.Segment
	// ByRange: only the wanted ranges are read, so that the file's hash is not checked.
	ByRange bool

	header []byte // JSON that the plan was made from

	mu  sync.Mutex
	sum string // of the whole file, once it was read and found right
}

// Files lists the source files of a model, with what the outputs want of each.
func Files(m *model.Model, outputs []*spans.Output) []*File {
	var files []*File
	segments := spans.Segments(outputs, len(m.Listing.Weights))
	for i, w := range m.Listing.Weights {
		files = append(files, &File{
			Index: i, Path: w.Path, Size: w.Size, Want: m.SHA256[i], header: w.Header.Raw, Segments: segments[i],
		})
	}
	return files
}

// FirstNeeded is the offset of the first segment of which somebody needs a delivery; the file's size if nobody does.
func (f *File) FirstNeeded(needs func(spans.Delivery) bool) int64 {
	for _, s := range f.Segments {
		if slices.ContainsFunc(s.To, needs) {
			return s.Off
		}
	}
	return f.Size
}

// Sum is the sha256 of the whole file, "" until it was read and found right.
func (f *File) Sum() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sum
}

// finish takes the sum of the whole file.
func (f *File) finish(sum string) error {
	if f.Want != "" && sum != f.Want {
		return &model.SourceError{File: f.Path, Want: f.Want, Got: sum}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sum = sum
	return nil
}

// Checkpoint is the state of the file once the outputs that are done need nothing of it: final, or a point at which another
// run can go on.
func (f *File) Checkpoint(l *ledger.Ledger, done func(path string) bool) ledger.Checkpoint {
	first := f.FirstNeeded(func(d spans.Delivery) bool { return !done(d.Output.Path) })
	c := l.Checkpoint(f.Path, first)
	switch final, sum := c.Integrity != "", f.Sum(); {
	case final && first < f.Size: // for outputs that this journal does not list
		return ledger.Checkpoint{File: f.Path}
	case !final && first == f.Size && sum != "":
		return ledger.Checkpoint{File: f.Path, Integrity: metadata.Streamed, SHA256: sum}
	}
	return c
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
	from, end := max(off, start), min(off+int64(len(p)), start+int64(len(f.header)))
	if from < end && !bytes.Equal(p[from-off:end-off], f.header[from-start:end-start]) {
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
