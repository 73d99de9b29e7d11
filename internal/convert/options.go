package convert

import (
	"errors"
	"log/slog"
	"time"

	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/forward"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/publish"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// Options say what to convert, where to, and within which budget.
type Options struct {
	Source model.Source
	Model  *model.Model
	Plan   *plan.Plan

	// OutDir is the folder of the result. If it's "", nothing is kept, which needs Push. Push
	// publishes the result.
	OutDir string
	Push   publish.Target // nil: nothing is published
	// WorkDir holds unfinished work if there is no OutDir.
	WorkDir string

	// Memory limits spools and buffered pieces of outputs. The zero value has all spools on disk.
	Memory budget.Memory
	// Disk limits, in bytes, the spools and the finished files that wait for their upload; 0 is no
	// limit.
	Disk int64
	// CommitWait is how long an uploaded output waits for its commit. With 0, a small result waits
	// for the last commit, and any other output a minute for each part.
	CommitWait time.Duration

	// Part makes only a share of the outputs, for one machine of many, and leaves the repo
	// unfinished. A run of the whole continues from what parts have published. With Finish it
	// refuses to make what a part should have made. Both need Push and no OutDir.
	Part   spans.Part
	Finish bool

	// Force replaces files with the result's names, and the result of another source.
	Force bool
	// License is a license ID of the Hub's that replaces what the source's card says, or "".
	License string
	// Version is written into the manifest and the card. Asked is written into the manifest: it's
	// plan.Options.Asked of the plan's options.
	Version, Asked string

	forward.Means
	Log *slog.Logger
}

// check refuses options that contradict each other, and sets defaults.
func (o *Options) check() error {
	switch {
	case o.Source == nil || o.Model == nil || o.Plan == nil || len(o.Plan.OutputFiles) == 0:
		return errors.New("options: a source, its model, and its plan are needed")
	case o.OutDir == "" && o.Push == nil:
		return errors.New("options: a target is needed: a folder, a repo, or both")
	case (!o.Part.Whole() || o.Finish) && (o.Push == nil || o.OutDir != ""):
		return errors.New(
			"options: parts are published to a repo: they need a target and no output folder")
	case !o.Part.Whole() && o.Finish:
		return errors.New("options: a run makes a part or finishes the parts, not both")
	case !o.Part.Whole() && o.Plan.Layout.Single():
		return errors.New("options: a single-file layout can't be split into parts")
	}
	if err := o.Part.Check(); err != nil {
		return err
	}
	if o.OutDir != "" {
		if err := publish.RefuseSource(o.Model, o.Plan, o.OutDir); err != nil {
			return err
		}
	}
	o.Complete()
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return nil
}
