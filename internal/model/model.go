// Package model opens a model wherever its files are, in a folder or in a repo of the Hub, and
// reads them: a source that is to be converted, or a DF11 model that is there already. It writes,
// plans, encodes and verifies nothing.
package model

import (
	"context"
	"io"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/plan"
)

// Source gives the bytes of a model. Weight files are named by their index in
// Model.Listing.Weights. All methods but Close may be called by several goroutines at once and
// repeated.
type Source interface {
	// Stream reads bytes [off, end) of a weight file, in order. It ends with io.EOF only after all
	// of them. The caller closes it.
	Stream(ctx context.Context, file int, off, end int64) (io.ReadCloser, error)
	// ReadRange reads n bytes at off of a weight file, for headers and samples. The caller owns
	// them.
	ReadRange(ctx context.Context, file int, off, n int64) ([]byte, error)
	// OpenFile reads a file that is not a weight, whole. The reader's last read fails if the bytes
	// are not the published ones.
	OpenFile(ctx context.Context, path string) (io.ReadCloser, error)
	// Local returns a weight file that can be read at random until the source is closed; nil if the
	// file has to be fetched.
	Local(file int) io.ReaderAt
	// Recheck checks the cached copy from which a file was read, and reports whether that copy is
	// damaged. A damaged copy is not used again.
	Recheck(ctx context.Context, path string) bool
	// Unchanged returns a ChangedError if the size or the time of a local weight file has changed
	// since the source was opened. The files of a repo never change: the commit is pinned.
	Unchanged(file int) error
	// Main lists the files that the repo's main has now, whatever commit the source is.
	Main(ctx context.Context) ([]plan.File, error)
	// Tree lists the files of the repo at a commit, as its Hub stores them.
	Tree(ctx context.Context, commit string) (map[string]hub.FileInfo, error)
	// FreeBuffers lets go of the memory in which bytes of a repo were to be fetched ahead.
	FreeBuffers()
	// Close releases the files.
	Close() error
}

// Model is what is known of a source before its weights move.
type Model struct {
	ID     string // "namespace/name" of a Hub repo, or the base name of a local folder or file
	Name   string // the output is named after it
	Local  bool   // the source is a folder or file
	Folder string // absolute path of a local source's folder
	Commit string // pinned commit of a Hub repo
	// Endpoint is the address of the repo's Hub; "" for a local source.
	Endpoint string
	Lineage  Lineage // repo and commit that a local source comes from, where known
	// Private and Gated say who may read the repo ("", "auto" or "manual").
	Private bool
	Gated   string
	// Card is the front matter of the source's model card; nil if there is none. PipelineTag and
	// LibraryName are the Hub's words.
	Card                     *metadata.FrontMatter
	PipelineTag, LibraryName string
	// Listing is the input of plan.New. SHA256 are the published sums of its weight files, "" for a
	// file without one.
	Listing plan.Source
	SHA256  []string
}

// File is a weight file of a source.
type File struct {
	plan.WeightFile
	Index  int    // among the source's weight files
	SHA256 string // "" if nobody has published it
}

// Files are the weight files of a source.
func (m *Model) Files() []File {
	var files []File
	for i, w := range m.Listing.Weights {
		files = append(files, File{w, i, m.SHA256[i]})
	}
	return files
}
