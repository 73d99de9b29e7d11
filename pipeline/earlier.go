package pipeline

import (
	"cmp"
	"slices"

	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/publish"
)

// takeOver marks the outputs that this run takes over as an earlier run has verified them. It takes
// one over if every target is as its manifest says (path, size, and SHA-256 of each file), and if
// each manifest lists the output with the digest that it has in this plan. The digest covers the
// SHA-256 of a Hub's source files. A local source has only a sample there, but this run has compared
// its SHA-256 with the manifest's. If any source file has none, takeOver does nothing.
//
// Anyone who can write to a target can forge all of this. So the run doesn't claim to have verified
// these outputs. With Force, or for a target that it publishes to for the first time, it takes
// nothing over.
func takeOver(s *state) {
	changed := func(in *publish.Inspection) bool { return !in.Intact() }
	if s.Force || slices.Contains(s.Model.SHA256, "") ||
		slices.ContainsFunc(s.found(), changed) {
		return
	}
	s.ledger.TakeOver(func(o ledger.Output) (run *metadata.Run) {
		for _, in := range s.found() {
			m := in.Manifest
			at := slices.IndexFunc(m.Outputs, func(f metadata.OutputFile) bool {
				return f.File() == o.File() && f.Digest == o.Digest
			})
			if at < 0 {
				return nil
			}
			run = cmp.Or(m.Outputs[at].Earlier,
				&metadata.Run{Version: m.Tool.Version, Commit: m.Source.Commit})
		}
		return run
	})
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
