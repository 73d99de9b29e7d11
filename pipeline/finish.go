package pipeline

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/target"
)

// finish brings over what is copied, makes everything else beside the weights, and has each target
// take the result.
func (s *state) finish(ctx context.Context) (*Report, error) {
	s.freeBuffers()
	report := s.report()
	sources, err := s.sourceFiles(s.ledger, report)
	if err != nil {
		return nil, err
	}
	disk, err := s.way().FreeDisk()
	if err != nil {
		return nil, err
	}
	copied, err := s.copier(disk).copyAll(ctx)
	if err != nil {
		return nil, err
	}
	r := &result{job: s.job, report: report, manifest: newManifest(s.job, s.ledger, sources)}
	if err := s.hand(ctx, r, copied); err != nil {
		return nil, err
	}
	s.leaveRepo(ctx, report)
	return report, nil
}

// hand hands a result to each target, which the files that were copied have reached already.
func (s *state) hand(ctx context.Context, r *result, copied []target.SideFile) error {
	files, err := r.files(copied)
	if err != nil {
		return err
	}
	whole := r.whole(files, s.ledger.Outputs())
	if s.folder.Stays {
		if err := s.folder.Finish(ctx, whole); err != nil {
			return err
		}
		warnOfCard(s.Log, s.folder.Inspection, "in "+s.OutDir)
	}
	if s.repo != nil {
		if err := s.repo.Finish(ctx, whole); err != nil {
			return err
		}
		warnOfCard(s.Log, s.repo.Found(), "of "+s.repo.Repo)
	}
	return nil
}

// warnOfCard says that a target keeps its card.
func warnOfCard(log *slog.Logger, in *target.Inspection, where string) {
	if in.CardStays {
		log.Warn("the card " + where +
			" is not of this program and stays as it is; --force overwrites it")
	}
}

// sourceFiles says for the manifest what is known of each weight file, and for the report that all
// weights are verified: what this run has not compared is in a source file that it has rebuilt.
func (j *job) sourceFiles(done *ledger.Ledger, r *Report) (out []metadata.SourceFile, err error) {
	r.Verified.Weights = r.Sizes.Weights
	for _, w := range j.Model.Listing.Weights {
		known, ok := done.File(w.Path)
		if !ok {
			return nil, fmt.Errorf("source file %s: its hash was never checked", w.Path)
		}
		if known.Integrity == metadata.Proof {
			r.Verified.Rebuilt++
		}
		out = append(out, metadata.SourceFile{
			Path: w.Path, Size: w.Size, SHA256: known.SHA256, Integrity: known.Integrity,
			Header: string(w.Header.Raw),
		})
	}
	return out, nil
}
