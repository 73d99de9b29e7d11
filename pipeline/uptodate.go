package pipeline

import (
	"context"

	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/target"
)

// expected is what a finished target holds. It only compares: it writes nothing, and reads no
// weight of a repo. The target's manifest remains a claim by the target's maker.
type expected struct {
	files        []names.File // without a SHA-256 if a commit pins the file
	repo, commit string       // of the original
}

// expect returns what a target holds once the job is done with these outputs.
func (j *job) expect(ctx context.Context, outputs []ledger.Output) (want expected, err error) {
	want = expected{nil, j.baseModel(), j.baseCommit()}
	for _, f := range j.carried() {
		sum, err := j.sourceSum(ctx, f.Path)
		if err != nil {
			return want, err
		}
		want.files = append(want.files, names.File{Path: f.Path, Size: f.Size, SHA256: sum})
	}
	for _, o := range outputs {
		want.files = append(want.files, o.File())
	}
	config, err := j.config()
	if config != nil {
		side := target.NewSideFile(j.Plan.ConfigPath(), metadata.KindConfig, config)
		want.files = append(want.files, side.File())
	}
	return want, err
}

// in reports whether a target is finished and its manifest lists everything expected.
func (e expected) in(found *target.Inspection) bool {
	if !found.Current {
		return false
	}
	listed := map[string]names.File{}
	for _, f := range found.Manifest.Outputs {
		listed[f.Path] = f.File()
	}
	for _, f := range e.files {
		if !f.MayBe(listed[f.Path]) {
			return false
		}
	}
	from := found.Manifest.Source
	return from.Repo == e.repo && from.Commit == e.commit
}
