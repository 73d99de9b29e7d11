// Package publish puts a result where it stays: into a folder, or into a repo of the Hub. It
// decides whose a file of a destination is (standing.go), by the claims that it finds there
// (claim.go), and how a destination becomes complete. It makes no outputs.
package publish

import (
	"cmp"
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

// A Target says where a result is to be published. Nothing is open yet.
type Target interface {
	Where() Location
	// Visibility says who may see the target, by what the source's Hub said when the source was
	// opened.
	Visibility(ctx context.Context, m *model.Model) Visibility
	// Empty reports whether nothing is there yet. Else there may be much of the result.
	Empty(ctx context.Context) bool
	// CheckCard lets the target's server check a model card.
	CheckCard(ctx context.Context, card []byte) error
	// Hides reports whether the target's server says that it has no such model, or data set, or
	// doesn't say that strangers may know of it although they may see the card that names it.
	Hides(ctx context.Context, m *model.Model, repo string, isDataset bool) bool
	// NameNow returns the name that a repo has today, or "" if the target's server knows none.
	NameNow(ctx context.Context, repo string) (string, error)
	// CanCopy reports, by path, which files of a source the server may be able to copy.
	CanCopy(ctx context.Context, m *model.Model, files []plan.File) map[string]bool
	// Open creates or opens the target before any work, or refuses it. What is published comes from
	// the folder.
	Open(ctx context.Context, run *Conversion, m *model.Model, from *Folder) (Remote, error)
}

// A Location is where a result is published. The zero value is nowhere.
type Location struct {
	Repo   string
	Branch string // "" for main
	URL    string // where a person finds it
	Commit string // the newest that the run knows; after Finish, it holds the result
}

// Ref names the branch of the repo, "namespace/name@branch", or is "" for nowhere.
func (l Location) Ref() string {
	if l.Repo == "" {
		return ""
	}
	return l.Repo + "@" + cmp.Or(l.Branch, "main")
}

// A Remote is a destination on a server. It gets its files from the run's folder. Upload may be
// called by several goroutines; one at a time calls everything else.
type Remote interface {
	Destination
	Where() Location
	// Visibility says who may see the result, as it was decided when the target was opened.
	Visibility() Visibility
	// Published lists the outputs that earlier runs have published: with whole, those of all parts,
	// and otherwise those of this run's part.
	Published(ctx context.Context, whole bool) ([]ledger.Output, error)
	// Parts is the number of parts that earlier runs have divided the conversion into.
	Parts() (int, error)
	// Upload brings an output to where a commit can name it. b is borrowed until Upload returns.
	Upload(ctx context.Context, o ledger.Output, b io.ReaderAt) error
	UploadFile(ctx context.Context, s SideFile) error
	// Copy asks the server to copy those files of the source that [Target.CanCopy] reports, and
	// returns the SHA-256 of those it copied, by path.
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

// Stored opens finished outputs that are in the folder.
func (f *Folder) Stored(ctx context.Context, outputs []ledger.Output) (*model.DF11, error) {
	return stored(ctx, f, outputs, 0, nil, func(o ledger.Output) hub.FileRef {
		return hub.FileRef{Path: o.Stored().Path, Size: o.Size, SHA256: o.SHA256}
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
		return f.Open(done[name].Stored().Path)
	}
	return model.OpenOutputs(ctx, refs, here, c, pieces)
}
