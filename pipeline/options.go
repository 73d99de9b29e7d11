package pipeline

import (
	"errors"
	"log/slog"
	"time"

	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/forward"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/progress"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/target"
)

// Options say what to convert, where to, and within which budget.
type Options struct {
	Source model.Source
	Model  *model.Model
	Plan   *plan.Plan

	// OutDir keeps the result; "" keeps nothing, which needs Push. Push publishes it.
	OutDir string
	Push   *target.Push
	// WorkDir holds what is on its way, if there is no OutDir.
	WorkDir string

	// Memory is what workers, spools and pieces of outputs may take; the zero value is one worker,
	// and all spools on disk.
	Memory budget.Memory
	// Disk bounds, in bytes, the spools and the finished files that wait for their upload; 0 is no
	// bound.
	Disk int64
	// CommitWait is how long an uploaded output waits for its commit; 0 is a minute for each part
	// of the conversion.
	CommitWait time.Duration

	// Part makes only a share of the outputs, for one of many machines, and leaves the repo
	// unfinished. A run of the whole goes on from what parts have published; with Finish it refuses
	// to make what a part should have. Both need Push and no OutDir.
	Part   spans.Part
	Finish bool

	// Force allows other weights in the target, and to replace those of the same names.
	Force bool
	// BaseModel names the Hub repo that a local source came from, for card and manifest; "" takes
	// that of Model.Lineage, and NoBaseModel says that it came from none.
	BaseModel string
	// Version is written into manifest and card.
	Version string

	GPU      forward.GPU // nil: none
	Progress *progress.Counters
	Log      *slog.Logger
}

// check refuses options that make no sense together, and sets defaults.
func (o *Options) check() error {
	switch {
	case (!o.Part.Whole() || o.Finish) && (o.Push == nil || o.OutDir != ""):
		return errors.New(
			"options: parts are published to a repo: they need a target and no output folder")
	case !o.Part.Whole() && o.Finish:
		return errors.New("options: a run is either a part or the one that finishes")
	case !o.Part.Whole() && o.Plan.Layout.Single():
		return errors.New("options: a single-file layout can't be split into parts")
	}
	if err := o.Part.Check(); err != nil {
		return err
	}
	if o.OutDir != "" {
		if err := target.RefuseSource(o.Model, o.Plan, o.OutDir); err != nil {
			return err
		}
	}
	o.Memory.Workers = max(1, o.Memory.Workers)
	if o.CommitWait == 0 {
		o.CommitWait = time.Duration(max(1, o.Part.N)) * forward.CommitAge
	}
	if o.Progress == nil {
		o.Progress = new(progress.Counters)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return nil
}

// NoBaseModel is the Options.BaseModel of a local source that came from no repo of the Hub,
// whatever its lineage says.
const NoBaseModel = "none"
