package convert

import (
	"context"
	"errors"
	"fmt"

	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/publish"
)

// finish copies files, makes everything else next to the weights, and completes each target.
func (s *state) finish(ctx context.Context) (*Report, error) {
	s.freeBuffers()
	report := s.report()
	sources, err := s.sourceFiles(s.Model.Original().Files(), s.ledger, report)
	if err != nil {
		return nil, err
	}
	k := s.copier()
	copied, err := k.copyAll(ctx, k.known(ctx, s.Log))
	if err != nil {
		return nil, err
	}
	r := &result{job: s.job, report: report, manifest: newManifest(s.job, s.ledger, sources)}
	if err := s.complete(ctx, r, copied); err != nil {
		return nil, err
	}
	s.release(ctx, report)
	return report, nil
}

// complete completes each target with a result, whose copied files are there already.
func (s *state) complete(ctx context.Context, r *result, copied []publish.SideFile) error {
	files, err := r.files(copied)
	if err != nil {
		return err
	}
	for _, d := range s.destinations() {
		whole, err := r.whole(ctx, files, s.ledger.Outputs(), d.Found())
		if err == nil {
			err = d.Finish(ctx, whole)
		}
		if err == nil && d == publish.Destination(s.to) {
			for _, o := range whole.Outputs {
				if !o.Committed { // the last commit had it
					s.Progress.Commit(1, o.Size)
				}
			}
			err = s.witness(ctx, whole)
		}
		if err != nil {
			return err
		}
	}
	for _, found := range s.found() {
		if why := found.WhyCardStays(); why != "" {
			s.Log.Warn(why + "; --force overwrites it")
		}
	}
	return nil
}

// witness lets another client read what was published. It returns an error if that client sees
// something wrong, and only warns if it can't look.
func (s *state) witness(ctx context.Context, whole *publish.Result) error {
	err := s.to.ReadBack(ctx, whole)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if unread, ok := errors.AsType[*publish.UnreadError](err); ok {
		s.Log.Warn("another client couldn't read back what was published", "err", unread)
		return nil
	}
	return err
}

// sourceFiles returns what the manifest says of each weight file. In the report it counts all
// weights as verified, except those taken over: weights that this run hasn't compared are in source
// files that it has rebuilt.
func (j *job) sourceFiles(files []model.File, done *ledger.Ledger,
	r *Report) (out []metadata.SourceFile, err error) {
	r.Verified.Weights = r.Sizes.Weights - r.Verified.Earlier
	unread := j.unread(done)
	for _, w := range files {
		checked, ok := done.File(w.Path)
		if unread[w.Path] && !ok {
			checked, ok = ledger.File{Integrity: metadata.Earlier, SHA256: w.SHA256}, true
		}
		if !ok {
			return nil, fmt.Errorf("source file %s: its hash was never checked", w.Path)
		}
		if checked.Integrity == metadata.Proof {
			r.Verified.Rebuilt++
		}
		out = append(out, metadata.SourceFile{
			Path: w.Path, Size: w.Size, SHA256: checked.SHA256, Integrity: checked.Integrity,
			Header: string(w.Header.Raw),
		})
	}
	return out, nil
}
