package publish

import (
	"context"

	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/names"
)

// An Origin is where the weights of a conversion come from.
type Origin struct {
	Repo   string // of a Hub; "" if it isn't known
	Commit string // of Repo; "" if it isn't known
	Local  bool   // the source's files are on this machine, so no commit pins them
	Source Source
}

// A Source answers what the claims in a destination leave open. A run that finds no claims asks
// nothing. Each method says what an answer costs. One goroutine asks at a time.
type Source interface {
	// Weights returns the weight files with their SHA-256, "" where it isn't known. It costs
	// nothing for a repo. A local source reads all its weights for the first answer.
	Weights(ctx context.Context) ([]names.File, error)
	// NameNow returns the name that a repo has today, or "" if no Hub knows it. It costs a request.
	NameNow(ctx context.Context, repo string) (string, error)
	// HashAt returns the SHA-256 of a file at another commit of the source, or git's hash of a
	// small file. It returns "" if the commit doesn't have the file or isn't known, as for a local
	// source. It costs a request for each commit.
	HashAt(ctx context.Context, commit, name string) (string, error)
	// Sum returns the SHA-256 of a file that the result copies from a local source, and "" for any
	// other file, because a commit pins the files of a repo. It reads the file.
	Sum(ctx context.Context, name string) (string, error)
	// Made reports whether outputs of a program from before the first release are made of the
	// weights of a local source, bit for bit. It reads the outputs and their weights.
	Made(ctx context.Context, outputs []ledger.Output, open Opener) (bool, error)
}

// OriginOf returns the origin of a model's weights. Its source answers from what a Hub says, and
// reads no files.
func OriginOf(m *model.Model) Origin {
	o := Origin{Local: m.Local, Source: listedSource{m}}
	if m.Origin != nil {
		o.Repo, o.Commit = m.Origin.Repo, m.Origin.Commit
	}
	return o
}

// A listedSource answers from what a Hub lists of a repo.
type listedSource struct{ model *model.Model }

func (s listedSource) Weights(context.Context) (list []names.File, err error) {
	for _, f := range s.model.Original().Files() {
		list = append(list, names.File{Path: f.Path, Size: f.Size, SHA256: f.SHA256})
	}
	return list, nil
}

func (s listedSource) NameNow(ctx context.Context, repo string) (string, error) {
	return s.model.NameNow(ctx, repo)
}

func (s listedSource) HashAt(ctx context.Context, commit, name string) (string, error) {
	return s.model.HashAt(ctx, commit, name)
}

func (listedSource) Sum(context.Context, string) (string, error) { return "", nil }
