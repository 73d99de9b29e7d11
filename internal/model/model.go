// Package model opens a model wherever its files are, in a folder or in a repo of the Hub, and reads them: a source that
// is to be converted, or a DF11 model that is there already. It writes, plans, encodes and verifies nothing.
package model

import (
	"context"
	"io"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/plan"
)

// CardName is the file name of a model card.
const CardName = "README.md"

// Source gives the bytes of a model. Weight files are named by their index in Model.Listing.Weights. All methods but Close
// may be called by several goroutines at once and repeated.
type Source interface {
	// Stream reads bytes [off, end) of a weight file, in order. It ends with io.EOF only after all of them. The caller
	// closes it.
	Stream(ctx context.Context, file int, off, end int64) (io.ReadCloser, error)
	// ReadRange reads n bytes at off of a weight file, for headers and samples. The caller owns them.
	ReadRange(ctx context.Context, file int, off, n int64) ([]byte, error)
	// OpenFile reads a file that is not a weight, whole. The reader's last read fails if the bytes are not the
	// published ones.
	OpenFile(ctx context.Context, path string) (io.ReadCloser, error)
	// Local is a weight file that can be read at random until the source is closed; nil if it has to be fetched.
	Local(file int) io.ReaderAt
	// Recheck checks the copy from which a file was read, and reports whether it is damaged; it is then not used again.
	Recheck(ctx context.Context, path string) bool
	// Unchanged is a ChangedError if a weight file has been written to since the source was opened, as far as its size and its
	// time tell. Those of a repo never are: the commit is pinned.
	Unchanged(file int) error
	// Hub is the client that the source is read by; nil for a folder.
	Hub() *hub.Client
	// Close releases the files.
	Close() error
}

// Model is what is known of a source before its weights move.
type Model struct {
	// ID is "namespace/name" for a Hub repo, or the base name of a local folder or file.
	ID string
	// Name is what the output is named after.
	Name string
	// Local: the source is a folder or file; Folder is the absolute path of the folder. Commit is the pinned commit of a
	// Hub repo.
	Local  bool
	Folder string
	Commit string
	// Lineage is where a local source comes from, as far as that is known.
	Lineage Lineage
	// Private and Gated say who may read the repo ("", "auto" or "manual").
	Private bool
	Gated   string
	// Card is the front matter of the source's model card; nil if there is none. PipelineTag and LibraryName are what
	// the Hub says of it.
	Card                     *metadata.FrontMatter
	PipelineTag, LibraryName string
	// Listing is the input of plan.New. SHA256 are the published sums of its weight files, "" where there is none.
	Listing plan.Source
	SHA256  []string
}
