package fetch

import (
	"bytes"
	"slices"

	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// sourceFile is one source file, and how to read it.
type sourceFile struct {
	model.File
	segments []spans.Segment // what the outputs need from it
	// byRange: read only tensors that are still needed, without a hash. Otherwise read the whole
	// file, from its first byte to its last.
	byRange bool
}

// layOut lists the source files and decides how to read each. If no output has anything from a file
// yet, it's read whole and hashed; otherwise it's read by range. A file with the right hash isn't
// read again. If some of it is needed again, its hash doesn't cover those bytes, so the ledger
// forgets it.
func (f *Fetcher) layOut(outputs []*spans.Output) {
	segments := spans.Segments(outputs, len(f.Model.SHA256))
	there := func(d spans.Delivery) bool { return !f.needs(d) }
	for i, w := range f.Model.Files() {
		file := &sourceFile{File: w, segments: segments[i]}
		_, known := f.Ledger.File(file.Path)
		if known && file.delivers(f.needs) {
			f.Ledger.ForgetFile(file.Path)
		}
		unhashed := f.Uncounted && file.SHA256 == "" // there is no hash to compare with
		file.byRange = f.ByRange || unhashed || known || file.delivers(there)
		f.files = append(f.files, file)
	}
}

// delivers reports whether fits returns true for one of the file's deliveries.
func (f *sourceFile) delivers(fits func(spans.Delivery) bool) bool {
	return slices.ContainsFunc(f.segments,
		func(s spans.Segment) bool { return slices.ContainsFunc(s.To, fits) })
}

// checkHeader compares the part of the header in p, which was read at off.
func (f *sourceFile) checkHeader(off int64, p []byte) error {
	const start = 8 // the header follows its length
	from, end := max(off, start), min(off+int64(len(p)), f.Header.DataStart())
	if from < end && !bytes.Equal(p[from-off:end-off], f.Header.Raw[from-start:end-start]) {
		return &model.SourceError{File: f.Path,
			Detail: "its header was read wrong or has changed since the plan was made"}
	}
	return nil
}
