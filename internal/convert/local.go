package convert

import (
	"context"

	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
)

// A localSource answers by reading the files of a job's local source.
type localSource struct {
	job     *job
	dir     string               // for spools
	carried map[string]plan.File // by path
	// model is the source's: with the SHA-256 of its weight files once an answer needed them
	model *model.Model
}

func newLocalSource(j *job, dir string) *localSource {
	s := &localSource{job: j, dir: dir, model: j.Model, carried: map[string]plan.File{}}
	for _, f := range j.carried() {
		s.carried[f.Path] = f
	}
	return s
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

// Sum hashes a file that the result copies, and returns "" for any other.
func (s *localSource) Sum(ctx context.Context, name string) (string, error) {
	if f, ok := s.carried[name]; ok {
		return s.job.sourceSum(ctx, f)
	}
	return "", nil
}
