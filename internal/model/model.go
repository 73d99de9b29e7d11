// Package model opens and reads a model in a folder or a Hub repo: a source to convert, or an
// existing DF11 model. It writes, plans, encodes, and verifies nothing.
package model

import (
	"context"
	"io"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/plan"
)

// A Source is a model to convert. It names weight files by their index in Model.Listing.Weights.
// Several goroutines may call all methods except Close at once, and repeat them.
type Source interface {
	// Stream reads bytes [off, end) of a weight file, in order. io.EOF comes only after the last.
	// The caller closes it.
	Stream(ctx context.Context, file int, off, end int64) (io.ReadCloser, error)
	// ReadRange fills p with the bytes at off of a weight file, for samples.
	ReadRange(ctx context.Context, file int, p []byte, off int64) error
	// OpenFile reads a whole file that holds no weights. The last read fails if the bytes aren't
	// the published ones.
	OpenFile(ctx context.Context, path string) (io.ReadCloser, error)
	// Local returns a weight file for random reads until the source is closed, or nil if the file
	// has to be fetched.
	Local(file int) io.ReaderAt
	// Recheck makes later reads of a file use neither memory nor a damaged cached copy. It returns
	// false if they'd read the same bytes.
	Recheck(ctx context.Context, path string) bool
	// Carries returns an error that names the files which a result can't carry over, because the
	// source is read offline from a cache that lacks them.
	Carries(p *plan.Plan) error
	// Unchanged returns a ChangedError if the size or the time of a local weight file changed since
	// the source was opened. A repo's files never change, because the commit is pinned.
	Unchanged(file int) error
	// Main returns the files and the model_index.json that the repo's main has now, whatever commit
	// the source is at.
	Main(ctx context.Context) (plan.Source, error)
	// FreeBuffers frees the memory for fetching ahead.
	FreeBuffers()
	Close() error
}

// A Model is what's known about a source before its weights move.
type Model struct {
	ID     string // "namespace/name" of a Hub repo, or the base name of a local folder or file
	Name   string // the output is named after it
	Local  bool   // the source is a folder or file
	Folder string // absolute path of a local source's folder
	// From is the model that the one weight file is made of, as Arrangement says: that model has
	// the original files, which a result may not replace, and which come back. It's nil for a model
	// that has its own.
	From        *Model
	Arrangement []catalog.Arranged
	// Decoded says that Folder is a DF11 model, which the files are decoded from.
	Decoded bool
	Commit  string // pinned commit of a Hub repo
	// Endpoint is the address of the repo's Hub; "" for a local source.
	Endpoint string
	// Origin is the Hub repo whose weights a source has: a Hub source itself, or the repo that
	// Prove has compared a local one with. Otherwise, it's nil.
	Origin *Origin
	// DecodedFrom is the DF11 repo that the weights are decoded from, or nil.
	DecodedFrom *DF11
	// Private and Gated are what the origin's Hub says. Gated is "", "auto", or "manual".
	Private     bool
	Gated       string
	PipelineTag string   // comes from the Hub
	history     *history // of the repo; nil for a local source
	card        []byte
	cardKept    string  // why a local folder keeps its card back; "" if it doesn't
	readers     *access // of the files that these are made from; nil: of these themselves
	// Listing is the input of plan.New. SHA256 has the published hash of each weight file, or "".
	Listing plan.Source
	SHA256  []string
	// memory is what it was opened with. What it's compared with or made into keeps to that, too.
	memory int64
	// compared has the hashes of the local files that were checked or compared, by path. A result
	// gets them only as they were then.
	compared map[string]Hashes
	// disclosures are what disclosed has found; nil until it looks
	disclosures []disclosure
	disk        *local            // what reads Folder; nil if that has no files of the model
	made        map[string][]byte // files that are made rather than read from Folder, by path
}

// Card returns the front matter of the source's model card. It's empty if there is none.
func (m *Model) Card() (metadata.FrontMatter, error) { return metadata.ParseFrontMatter(m.card) }

// Original returns the model that has the original weight files: From, or m itself.
func (m *Model) Original() *Model {
	if m.From != nil {
		return m.From
	}
	return m
}

// OriginalSource returns the source that reads the files of [Model.Original].
func OriginalSource(src Source) Source {
	if a, ok := src.(*arranged); ok {
		return a.from
	}
	return src
}

// CardLeftOut says what of the source's card ours doesn't have. The text of a DF11 model's card may
// be ours.
func (m *Model) CardLeftOut() []string {
	if m.cardKept != "" {
		return []string{"nothing of it is published, because it's " + m.cardKept}
	}
	return metadata.LeftOut(m.card, m.Origin != nil || m.DecodedFrom != nil)
}

// A File is a weight file of a source.
type File struct {
	plan.WeightFile
	Index  int    // among the source's weight files
	SHA256 string // the published one, or ""
}

// Files returns the weight files of a source.
func (m *Model) Files() []File {
	var files []File
	for i, w := range m.Listing.Weights {
		files = append(files, File{w, i, m.SHA256[i]})
	}
	return files
}
