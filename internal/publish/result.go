package publish

import (
	"crypto/sha256"
	"fmt"
	"io"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/names"
)

// A Result is a conversion that is ready for [Destination.Finish].
type Result struct {
	Files       []SideFile // in the order in which they appear
	Outputs     []ledger.Output
	Summary     string // of the last commit
	Description string
	// Sending counts the bytes that are read of an output during its upload, until end is called.
	Sending func(r io.ReaderAt, size int64) (counted io.ReaderAt, end func(sent bool))
}

// inPlace lists the files that are in their target before the end: outputs and copied files.
func (r *Result) inPlace() (list []names.File) {
	for _, o := range r.Outputs {
		list = append(list, o.File())
	}
	for _, s := range r.Files {
		if s.Data == nil {
			list = append(list, s.File())
		}
	}
	return list
}

// all lists every file of the result.
func (r *Result) all() []names.File {
	list := r.inPlace()
	for _, s := range r.Files {
		if s.Data != nil {
			list = append(list, s.File())
		}
	}
	return list
}

// ManifestSHA256 is that of the manifest, or "" if the result has none.
func (r *Result) ManifestSHA256() string {
	for _, s := range r.Files {
		if s.Path == names.Manifest {
			return s.SHA256
		}
	}
	return ""
}

// A SideFile is a file of the result without weights.
type SideFile struct {
	metadata.OutputFile
	Data   []byte // nil: the file was copied, and is in the run's folder until it is uploaded
	Remote bool   // the target's store has the bytes, copied from the source's
}

// NewSideFile is a file that a run has written.
func NewSideFile(path string, kind metadata.Kind, data []byte) SideFile {
	blob := hub.NewHash("git", int64(len(data)))
	blob.Write(data)
	file := metadata.OutputFile{Path: path, Kind: kind, Size: int64(len(data)), SHA256: sumOf(data),
		Blob: fmt.Sprintf("%x", blob.Sum(nil))}
	if kind == metadata.KindCard {
		file.Part = metadata.CardPart(data)
	}
	return SideFile{OutputFile: file, Data: data}
}

func sumOf(data []byte) string { return fmt.Sprintf("%x", sha256.Sum256(data)) }
