package convert

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/publish"
)

// finish copies files, makes everything else next to the weights, and completes each target.
func finish(ctx context.Context, j *job, t *targets, sendAll bool) (*Report, error) {
	freeBuffers(j, t)
	sources, err := j.sourceFiles(t.ledger)
	if err != nil {
		return nil, err
	}
	k := newCopier(j, t, sendAll)
	copied, err := k.copyAll(ctx, k.known(ctx, j.Log))
	if err != nil {
		return nil, err
	}
	report := newReport(j, t)
	// weights that this run hasn't compared are in source files that it has rebuilt
	report.Verified.Weights = report.Sizes.Weights - report.Verified.Earlier
	for _, f := range sources {
		if f.Integrity == metadata.Proof {
			report.Verified.Rebuilt++
		}
	}
	r := &result{job: j, at: t.where(j), sizes: report.Sizes,
		manifest: newManifest(j, t.ledger, sources)}
	if report.Target.ManifestSHA256, err = complete(ctx, r, t, copied); err != nil {
		return nil, err
	}
	report.Target.Commit = t.release(ctx, j.Log)
	return report, nil
}

// complete completes each target with a result, whose copied files are there already. It returns
// the SHA-256 of the manifest, that of the repo if there are two.
func complete(ctx context.Context, r *result, t *targets,
	copied []publish.SideFile) (manifest string, err error) {
	files, err := r.files(copied)
	if err != nil {
		return "", err
	}
	for _, d := range t.destinations() {
		whole, err := r.whole(ctx, files, t.ledger.Outputs(), d.Found())
		if err == nil {
			err = d.Finish(ctx, whole)
		}
		if err == nil && d == publish.Destination(t.to) {
			for _, o := range whole.Outputs {
				if !o.Committed { // the last commit had it
					r.Progress.Commit(1, o.Size)
				}
			}
			err = readBack(ctx, t.to, whole, r.Log)
		}
		if err != nil {
			return "", err
		}
		manifest = whole.ManifestSHA256()
	}
	for _, found := range t.found() {
		if why := found.WhyCardStays(); why != "" {
			r.Log.Warn(why + "; --force overwrites it")
		}
	}
	return manifest, nil
}

// readBack lets another client read what was published. It returns an error if that client sees
// something wrong, and only warns if it can't look, also because ctx has ended: all is published.
func readBack(ctx context.Context, to publish.Remote, whole *publish.Result,
	log *slog.Logger) error {
	err := to.ReadBack(ctx, whole)
	if unread, ok := errors.AsType[*publish.UnreadError](err); ok {
		log.Warn("another client couldn't read back what was published", "err", unread)
		return nil
	}
	return err
}

// sourceFiles returns what the manifest says of each weight file.
func (j *job) sourceFiles(done *ledger.Ledger) (out []metadata.SourceFile, err error) {
	unread := j.unread(done)
	for _, w := range j.Model.Original().Files() {
		checked, ok := done.File(w.Path)
		if unread[w.Path] && !ok {
			checked, ok = ledger.File{Integrity: metadata.Earlier, SHA256: w.SHA256}, true
		}
		if !ok {
			return nil, fmt.Errorf("source file %s: its hash was never checked", w.Path)
		}
		out = append(out, metadata.SourceFile{
			Path: w.Path, Size: w.Size, SHA256: checked.SHA256, Integrity: checked.Integrity,
			Header: string(w.Header.Raw),
		})
	}
	return out, nil
}
