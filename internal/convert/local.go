package convert

import (
	"context"

	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/names"
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
