package convert

import (
	"context"
	"slices"

	"github.com/df11-convert/df11-convert/internal/forward"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/progress"
	"github.com/df11-convert/df11-convert/internal/publish"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// A localSource answers by reading the files of a job's local source.
type localSource struct {
	job *job
	dir string // for spools
	// model is the source's: with the SHA-256 of its weight files once an answer needed them
	model *model.Model
}

// Weights hashes the weight files, because the plan knows only their headers.
func (s *localSource) Weights(ctx context.Context) (list []names.File, err error) {
	original, m := *s.model.Original(), *s.model
	files := original.Files()
	if err := addSums(ctx, s.job.Source, files, s.job.Workers); err != nil {
		return nil, err
	}
	original.SHA256 = nil
	for _, f := range files {
		original.SHA256 = append(original.SHA256, f.SHA256)
		list = append(list, names.File{Path: f.Path, Size: f.Size, SHA256: f.SHA256})
	}
	if m.From == nil {
		s.model = &original
		return list, nil
	}
	m.From = &original
	s.model = &m
	return list, nil
}

// NameNow asks the Hub that the result is published to, if it is.
func (s *localSource) NameNow(ctx context.Context, repo string) (string, error) {
	if s.job.Push == nil {
		return "", nil
	}
	return s.job.Push.NameNow(ctx, repo)
}

// HashAt returns "", because a folder has no commits.
func (*localSource) HashAt(context.Context, string, string) (string, error) { return "", nil }

// Sum hashes a file that the result copies.
func (s *localSource) Sum(ctx context.Context, name string) (string, error) {
	return s.job.sourceSum(ctx, name)
}

// Made compares all bits of outputs that an earlier version of this program made.
func (s *localSource) Made(ctx context.Context, made []ledger.Output,
	open publish.Opener) (bool, error) {
	var outputs []*spans.Output
	for _, o := range s.job.outputs {
		if slices.ContainsFunc(made, func(m ledger.Output) bool { return m.Path == o.Path }) {
			outputs = append(outputs, o)
		}
	}
	if len(outputs) < len(made) {
		return false, nil
	}
	s.job.Log.Info("comparing what an earlier version of this program has made", "files", len(made))
	stored, err := open(ctx, made, s.job.Memory.Pieces)
	if err == nil {
		defer stored.Close()
		_, _, err = forward.Compare(ctx, forward.Comparison{Source: s.job.Source, Model: s.model,
			Outputs: outputs, Stored: stored, WorkDir: s.dir,
			Means: forward.Means{Workers: s.job.Workers, Progress: new(progress.Counters)}})
	}
	if model.SubjectOf(err) != "" {
		return false, nil
	}
	return err == nil, err
}
