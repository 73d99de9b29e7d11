package convert

import (
	"context"
	"errors"
	"log/slog"

	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/publish"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// targets are where a run makes outputs and publishes them, and what is done there.
type targets struct {
	folder *publish.Folder // where outputs are made
	to     publish.Remote  // where they're published; nil: nowhere
	ledger *ledger.Ledger
	advice []string // warnings about what the Hub advises against
}

// where returns where the result is published: a repo that was renamed has its present name.
func (t *targets) where(j *job) publish.Location {
	if t.to == nil {
		return j.where()
	}
	return t.to.Where()
}

// destinations lists where the result goes.
func (t *targets) destinations() (list []publish.Destination) {
	if t.folder.Stays {
		list = append(list, t.folder)
	}
	if t.to != nil {
		list = append(list, t.to)
	}
	return list
}

// found lists what the destinations held when the run last inspected them.
func (t *targets) found() (list []*publish.Inspection) {
	for _, d := range t.destinations() {
		list = append(list, d.Found())
	}
	return list
}

// stored opens finished outputs, in the folder or where they're published. It keeps at most pieces
// bytes of published ones in memory.
func (t *targets) stored(ctx context.Context, outputs []*spans.Output, pieces int64) (*model.DF11,
	error) {
	var done []ledger.Output
	for _, o := range outputs {
		d, _ := t.ledger.Output(o.Path)
		done = append(done, d)
	}
	if t.to == nil {
		return t.folder.Stored(ctx, done)
	}
	return t.to.Stored(ctx, done, pieces)
}

// forget forgets wrong outputs, and removes them from the folder.
func (t *targets) forget(wrong func(ledger.Output) bool) error {
	for _, o := range t.ledger.Outputs() {
		if o.Here && wrong(o) {
			if err := t.folder.Remove(o.Path); err != nil {
				return err
			}
		}
	}
	t.ledger.Keep(func(o ledger.Output) bool { return !wrong(o) })
	return nil
}

// forgetFile forgets a source file and everything that was made from it, and removes that from the
// folder.
func (t *targets) forgetFile(file string, made []*spans.Output) error {
	wrong := map[string]bool{}
	for _, o := range made {
		wrong[o.Path] = true
		t.ledger.ForgetTensors(o.Path)
	}
	t.ledger.ForgetFile(file)
	return t.forget(func(o ledger.Output) bool { return wrong[o.Path] })
}

// close ends the journal and releases the folder. With done, only the result stays.
func (t *targets) close(done bool) error {
	return errors.Join(t.ledger.Close(), t.folder.Close(done))
}

// release removes what the work needed where outputs were published. It returns the commit that has
// the result, or "" if they were published nowhere.
func (t *targets) release(ctx context.Context, log *slog.Logger) (commit string) {
	if t.to == nil {
		return ""
	}
	commit = t.to.Where().Commit
	if err := t.to.CleanUp(ctx); err != nil {
		log.Warn("the target is complete, but its work branch couldn't be removed", "err", err)
	}
	return commit
}
