package convert

import (
	"context"
	"slices"

	"github.com/df11-convert/df11-convert/internal/forward"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/progress"
	"github.com/df11-convert/df11-convert/internal/publish"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// This is the part of internal/publish/prerelease.go that compares outputs with their source or
// their plan.

// Made compares all bits of outputs that a program from before the first release made.
func (s *localSource) Made(ctx context.Context, made []ledger.Output,
	open publish.Opener) (bool, error) {
	var outputs []*spans.Output
	for _, o := range s.job.outputs {
		if slices.ContainsFunc(made, func(m ledger.Output) bool { return m.Path == o.Path }) {
			outputs = append(outputs, o)
		}
	}
	if len(outputs) < len(made) {
		return false, nil
	}
	s.job.Log.Info("comparing what an earlier version of this program has made", "files", len(made))
	stored, err := open(ctx, made, s.job.Memory.Pieces)
	if err == nil {
		defer stored.Close()
		_, _, err = forward.Compare(ctx, forward.Comparison{Source: s.job.Source, Model: s.model,
			Outputs: outputs, Stored: stored, WorkDir: s.dir,
			Means: forward.Means{Workers: s.job.Workers, Progress: new(progress.Counters)}})
	}
	if model.SubjectOf(err) != "" {
		return false, nil
	}
	return err == nil, err
}

// isPrerelease reports whether a file that a manifest lists is an output under its former name, or
// without a digest.
func isPrerelease(m *metadata.Manifest, f metadata.OutputFile, o ledger.Output) bool {
	digested := slices.ContainsFunc(m.Outputs,
		func(f metadata.OutputFile) bool { return f.Digest != "" })
	return f.File() == o.Stored() && (o.From != "" || !digested)
}

// checkUndigested compares the stored headers of outputs that have no digest with the plan, and
// forgets the runs that verified those that differ.
func (t *targets) checkUndigested(ctx context.Context, outputs []*spans.Output, pieces int64,
	runs map[string]*metadata.Run) error {
	if len(outputs) == 0 {
		return nil
	}
	d, err := t.stored(ctx, outputs, pieces)
	if err != nil {
		return err
	}
	defer d.Close()
	stored := headers(d)
	for _, o := range outputs {
		done, _ := t.ledger.Output(o.Path)
		if forward.CheckStored(o, stored[done.Stored().Path]) != nil {
			delete(runs, o.Path)
		}
	}
	return nil
}
