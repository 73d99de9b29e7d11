package pipeline

import (
	"errors"
	"log/slog"

	"github.com/df11-convert/df11-convert/internal/plan"
)

// Integrity states of a source file, as the manifest has them (docs/manifest.md).
const (
	integrityStreamed  = "streamed"
	integrityProof     = "proof"
	integrityUnchecked = "unchecked"
)

// Limits on small files that are read whole.
const (
	maxConfigBytes  = 8 << 20
	maxJournalBytes = 256 << 20
)

// Options say what to convert, where to, and within which budgets. The zero value of each budget means a default.
type Options struct {
	Source Source
	Model  *Model
	Plan   *plan.Plan

	// OutDir keeps the result; "" keeps nothing, which needs Push. Push publishes it.
	OutDir string
	Push   *Push
	// WorkDir holds what is on its way, if there is no OutDir.
	WorkDir string

	// Workers is the parallelism of encoding and verification, Uploads the number of files sent at once.
	Workers, Uploads int
	// Disk bounds, in bytes, the spools and the finished files that wait for their upload; 0 is no bound.
	Disk int64
	// SpoolMemory bounds the spools that are held in memory; 0 is 64 MiB, less than 0 is none. SpoolSync is after how many
	// bytes from the Hub the spools on disk are made to survive a kill; 0 is 256 MiB, less than 0 is only when a run stops.
	SpoolMemory, SpoolSync int64
	// PieceMemory bounds what is kept of outputs that are read back by ranges, to prove source files; 0 is 96 MiB.
	PieceMemory int64

	// DropCache asks the system to forget pages of a local source and of the output folder once they are used. It is for
	// models that its cache can't hold.
	DropCache bool

	// Part makes only a share of the outputs, for one of many machines, and leaves the repo unfinished. Finish completes
	// what the parts have published. Both need Push and no OutDir.
	Part   Part
	Finish bool

	// Force allows other weights in the target, and to replace those of the same names. Strict makes a unit that DF11 cannot
	// hold an error.
	Force, Strict bool
	// BaseModel names the Hub repo that a local source came from, for the model card.
	BaseModel string
	// Version is written into manifest and card.
	Version string

	GPU      GPU // nil: none
	Progress *Progress
	Log      *slog.Logger
}

func (o *Options) check() error {
	switch {
	case o.Source == nil || o.Model == nil || o.Plan == nil:
		return errors.New("options: source, model and plan are needed")
	case o.OutDir == "" && o.Push == nil:
		return errors.New("options: neither an output folder nor a target repo")
	case o.OutDir == "" && o.WorkDir == "":
		return errors.New("options: publishing without an output folder needs a work folder")
	case (!o.Part.whole() || o.Finish) && (o.Push == nil || o.OutDir != "" || o.Push.CreatePR):
		return errors.New("options: parts are published to a repo: they need a target, no output folder and no pull request")
	case !o.Part.whole() && o.Finish:
		return errors.New("options: a run is either a part or the one that finishes")
	case !o.Part.whole() && o.Plan.Layout.Single():
		return errors.New("options: a single-file layout can't be split into parts")
	case (!o.Part.whole() || o.Finish) && len(o.Plan.Dropped) > 0:
		return errors.New("options: the source holds tensors outside the model, so its files can't be proved from parts; convert it in one run")
	}
	if err := errors.Join(o.Part.check(), o.refuseSourceFolder()); err != nil {
		return err
	}
	o.Workers, o.Uploads = max(1, o.Workers), max(1, o.Uploads)
	if o.Progress == nil {
		o.Progress = new(Progress)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return nil
}

// journalName is the name of this run's journal.
func (o *Options) journalName() string {
	if o.Finish {
		return finishPart
	}
	return o.Part.String()
}
