// Package publish puts a result where it stays: into a folder, or into a repo of the Hub. It
// decides whose a file of a destination is (standing.go), by the claims that it finds there
// (claim.go), and how a destination becomes complete. It makes no outputs.
package publish

import (
	"context"
	"io"
	"os"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
)

// A Destination holds the result in the end: a [Folder] that stays, or a [Remote].
type Destination interface {
	// Found is what the destination held when this run looked at it last.
	Found() *Inspection
	// Finish makes the destination complete. It fails if an output is missing. It may be repeated.
	Finish(ctx context.Context, r *Result) error
}

// A Remote is a destination on a server, or nowhere. It gets its files from the run's folder. Upload
// may be called by several goroutines; one at a time calls everything else.
type Remote interface {
	Destination
	// Publishes is false if nothing is published. Then Found is nil, Published is empty, and only
	// Stored may be called.
	Publishes() bool
	Where() Location
	// Visibility says who may see the result, as it was decided when the destination was opened.
	Visibility() Visibility
	// Published lists the outputs that earlier runs have published: with whole, those of all parts,
	// and otherwise those of this run's part.
	Published(ctx context.Context, whole bool) ([]ledger.Output, error)
	// Parts is the number of parts that earlier runs have divided the conversion into.
	Parts() (int, error)
	// Upload brings an output to where a commit can name it. b is borrowed until Upload returns.
	Upload(ctx context.Context, o ledger.Output, b io.ReaderAt) error
	UploadFile(ctx context.Context, s SideFile) error
	// Copy asks the server to copy those files of the source that [Push.CanCopy] reports, and returns
	// the SHA-256 of those it copied, by path.
	Copy(ctx context.Context, m *model.Model, files []plan.File) (map[string]string, error)
	// Commit makes uploaded outputs part of the destination, together with the journal that lists
	// them and all others that are committed.
	Commit(ctx context.Context, outputs []ledger.Output, l *ledger.Ledger) error
	// Stored opens finished outputs, in the folder or, by ranges, on the server. It keeps at most
	// pieces bytes of them in memory. Nothing may be committed until it's closed.
	Stored(ctx context.Context, outputs []ledger.Output, pieces int64) (*model.DF11, error)
	// ReadBack lets another client than ours read, after Finish, what was published. The error is an
	// UnreadError if that client can't look.
	ReadBack(ctx context.Context, r *Result) error
	// CleanUp removes what this run and earlier ones needed on the server, after Finish.
	CleanUp(ctx context.Context) error
	FreeBuffers()
}

// nowhere is the Remote of a run that keeps its result in a folder, and publishes nothing.
type nowhere struct{ from *Folder }

func (nowhere) Publishes() bool                       { return false }
func (nowhere) Found() *Inspection                    { return nil }
func (nowhere) Where() Location                       { return Location{} }
func (nowhere) Visibility() Visibility                { return Visibility{} }
func (nowhere) FreeBuffers()                          {}
func (nowhere) CleanUp(context.Context) error         { return nil }
func (nowhere) Parts() (int, error)                   { return 0, nil }
func (nowhere) Finish(context.Context, *Result) error { return nil }

func (nowhere) ReadBack(context.Context, *Result) error { return nil }

func (nowhere) UploadFile(context.Context, SideFile) error { return nil }

func (nowhere) Upload(context.Context, ledger.Output, io.ReaderAt) error { return nil }

func (nowhere) Published(context.Context, bool) ([]ledger.Output, error) { return nil, nil }

func (nowhere) Commit(context.Context, []ledger.Output, *ledger.Ledger) error { return nil }

func (nowhere) Copy(context.Context, *model.Model, []plan.File) (map[string]string, error) {
	return nil, nil
}

func (n nowhere) Stored(ctx context.Context, outputs []ledger.Output, pieces int64) (*model.DF11,
	error) {
	return stored(ctx, n.from, outputs, pieces, nil, func(o ledger.Output) hub.FileRef {
		return hub.FileRef{Path: o.There().Path, Size: o.Size, SHA256: o.SHA256}
	})
}

// stored opens finished outputs in a folder, or where ref says.
func stored(ctx context.Context, f *Folder, outputs []ledger.Output, pieces int64, c *hub.Client,
	ref func(ledger.Output) hub.FileRef) (*model.DF11, error) {
	var refs []hub.FileRef
	done := map[string]ledger.Output{}
	for _, o := range outputs {
		r := ref(o)
		refs, done[r.Path] = append(refs, r), o
	}
	// a file of the folder is the output only if it has the output's sha256
	here := func(name string) (*os.File, error) {
		if !done[name].Here {
			return nil, os.ErrNotExist
		}
		return f.Open(done[name].There().Path)
	}
	return model.OpenOutputs(ctx, refs, here, c, pieces)
}
