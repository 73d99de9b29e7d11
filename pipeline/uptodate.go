package pipeline

import (
	"context"

	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/target"
)

// expected is what a finished target holds. It only compares: nothing here can write, and no weight
// of a repo is read. The manifest in the target stays the claim of whoever made it.
type expected struct {
	sums         map[string]string // sha256 by path; "" where a commit pins the file
	repo, commit string            // of the original
}

// expect returns what a target holds once the job is done with these outputs.
func (j *job) expect(ctx context.Context, outputs []ledger.Output) (want expected, err error) {
	want = expected{map[string]string{}, j.baseModel(), j.baseCommit()}
	for _, f := range j.carried() {
		if want.sums[f.Path], err = j.sourceSum(ctx, f.Path); err != nil {
			return want, err
		}
	}
	for _, o := range outputs {
		want.sums[o.Path] = o.SHA256
	}
	config, err := j.config()
	if config != nil {
		want.sums[j.Plan.ConfigPath()] = target.NewSideFile("", metadata.KindConfig, config).SHA256
	}
	return want, err
}

// in reports whether a target is finished, and its manifest lists all that is expected.
func (e expected) in(found *target.Inspection) bool {
	if !found.Current {
		return false
	}
	listed := map[string]string{}
	for _, f := range found.Manifest.Outputs {
		listed[f.Path] = f.SHA256
	}
	for path, sha := range e.sums {
		if has, ok := listed[path]; !ok || sha != "" && sha != has {
			return false
		}
	}
	from := found.Manifest.Source
	return from.Repo == e.repo && from.Commit == e.commit
}
