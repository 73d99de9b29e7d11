package fetch

import (
	"bytes"
	"slices"

	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// sourceFile is one source file, and how it is read.
type sourceFile struct {
	model.File
	segments []spans.Segment // what the outputs want of it
	// byRange: only tensors that are still needed are read, under no hash. Else all of the file is,
	// from its first byte to its last.
	byRange bool
}

// layOut lists the source files and decides how each is read: whole and through its hash if nothing
// of it is there, else by range. A file whose hash was right is not read again. If some of it has
// to be, that hash does not cover what comes now.
func (f *Fetcher) layOut(outputs []*spans.Output) {
	segments := spans.Segments(outputs, len(f.Model.SHA256))
	there := func(d spans.Delivery) bool { return !f.needs(d) }
	for i, w := range f.Model.Files() {
		file := &sourceFile{File: w, segments: segments[i]}
		_, known := f.Ledger.File(file.Path)
		if known && file.delivers(f.needs) {
			f.Ledger.ForgetFile(file.Path)
		}
		unhashed := f.Uncounted && file.SHA256 == "" // nothing is there to compare a sum with
		file.byRange = f.ByRange || unhashed || known || file.delivers(there)
		f.files = append(f.files, file)
	}
}

// delivers reports whether one of the file's deliveries fits.
func (f *sourceFile) delivers(fits func(spans.Delivery) bool) bool {
	return slices.ContainsFunc(f.segments,
		func(s spans.Segment) bool { return slices.ContainsFunc(s.To, fits) })
}

// checkHeader compares what p, read at off, holds of the header.
func (f *sourceFile) checkHeader(off int64, p []byte) error {
	const start = 8 // the header follows its length
	from, end := max(off, start), min(off+int64(len(p)), f.Header.DataStart())
	if from < end && !bytes.Equal(p[from-off:end-off], f.Header.Raw[from-start:end-start]) {
		return &model.HeaderError{File: f.Path}
	}
	return nil
}
