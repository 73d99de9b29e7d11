package pipeline

import (
	"context"
	"slices"

	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/target"
)

// expect returns a test for targets that hold what they do once the job is done with these outputs.
// The test only compares: it writes nothing, and reads no weight of a repo. The target's manifest
// remains a claim by the target's maker.
func (j *job) expect(ctx context.Context,
	outputs []ledger.Output) (holds func(*target.Inspection) bool, err error) {
	var want []names.File // without a SHA-256 if a commit pins the file
	for _, f := range j.carried() {
		sum, err := j.sourceSum(ctx, f.Path)
		if err != nil {
			return nil, err
		}
		want = append(want, names.File{Path: f.Path, Size: f.Size, SHA256: sum})
	}
	for _, o := range outputs {
		want = append(want, o.File())
	}
	config, err := j.config()
	if config != nil {
		side := target.NewSideFile(j.Plan.ConfigPath(), metadata.KindConfig, config)
		want = append(want, side.File())
	}
	return func(found *target.Inspection) bool {
		if !found.Current {
			return false
		}
		listed := map[string]names.File{}
		for _, f := range found.Manifest.Outputs {
			listed[f.Path] = f.File()
		}
		differs := func(f names.File) bool { return !f.MayBe(listed[f.Path]) }
		from := found.Manifest.Source
		return from.Repo == j.baseModel() && from.Commit == j.baseCommit() &&
			!slices.ContainsFunc(want, differs)
	}, err
}
