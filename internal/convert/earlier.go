package convert

import (
	"cmp"
	"context"
	"slices"

	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/publish"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// takeOver marks the outputs that this run leaves as an earlier run verified them. It takes one
// over if every target is as its manifest says (path, size, and SHA-256 of each file), and if each
// manifest lists the output with the digest that it has in this plan. The digest covers the SHA-256
// of a Hub's source files. A local source has only a sample there, but this run has compared its
// SHA-256 with the manifest's. If any source file has none, or is made of others, takeOver does
// nothing. Without a digest, the stored header must be the one that this plan writes
// (prerelease.go).
//
// Anyone who can write to a target can forge all of this. So the run doesn't claim to have verified
// these outputs. With Force, or for a target that it publishes to for the first time, it takes
// nothing over.
func takeOver(ctx context.Context, j *job, t *targets) error {
	changed := func(in *publish.Inspection) bool { return !in.Intact() }
	found := t.found()
	if j.Force || j.Model.From != nil || slices.Contains(j.Model.SHA256, "") ||
		slices.ContainsFunc(found, changed) {
		return nil
	}
	runs, undigested := map[string]*metadata.Run{}, []*spans.Output{}
	for _, planned := range j.outputs {
		o, _ := t.ledger.Output(planned.Path)
		var listed []metadata.OutputFile
		for _, in := range found {
			for _, f := range in.Manifest.Outputs {
				is := f.File() == o.File() && f.Digest == o.Digest
				if is || isPrerelease(in.Manifest, f, o) {
					listed = append(listed, f)
					runs[o.Path] = cmp.Or(f.Earlier, &metadata.Run{Version: in.Manifest.Tool.Version,
						Commit: in.Manifest.Source.Commit})
				}
			}
		}
		if len(listed) < len(found) {
			delete(runs, o.Path)
		} else if slices.ContainsFunc(listed, func(f metadata.OutputFile) bool { return f.Digest == "" }) {
			undigested = append(undigested, planned)
		}
	}
	if err := t.checkUndigested(ctx, undigested, j.Memory.Pieces, runs); err != nil {
		return err
	}
	t.ledger.TakeOver(func(o ledger.Output) *metadata.Run { return runs[o.Path] })
	return nil
}

// unread returns, by path, the source files that this run doesn't read, because it takes over every
// output made of them.
func (j *job) unread(done *ledger.Ledger) map[string]bool {
	unread, taken, files := map[string]bool{}, false, j.Model.Listing.Weights
	for _, f := range files {
		unread[f.Path] = true
	}
	for _, o := range j.outputs {
		if x, _ := done.Output(o.Path); x.Earlier != nil {
			taken = true
			continue
		}
		for _, i := range o.Files() {
			delete(unread, files[i].Path)
		}
	}
	if !taken {
		return nil
	}
	return unread
}
