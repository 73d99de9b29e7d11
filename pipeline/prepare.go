package pipeline

import (
	"context"
	"errors"
	"slices"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/target"
)

// A state is what a run knows about its job: what the targets hold, and what is done.
type state struct {
	*job
	source *model.Model   // of the job, with the sha256 that this run has computed
	folder *target.Folder // that outputs are made in; nil while the targets aren't open
	repo   *target.Repo   // nil without Push
	ledger *ledger.Ledger

	copied  map[string]string // sha256 of carried files that are where they belong, by path
	sendAll bool              // the Hub copies no file by itself
}

// open opens the targets, refuses those that hold something else, and finds out what is already
// done. After an error they are closed.
func (s *state) open(ctx context.Context) (err error) {
	root, stays := s.OutDir, s.OutDir != ""
	if !stays {
		root = s.WorkDir
	}
	owner := target.NewOwner(s.Plan, s.baseModel(), s.Part.String(), s.Force, s.sourceSum)
	if s.folder, err = target.OpenFolder(ctx, root, stays, owner,
		s.Model.Perm(s.Plan)); err != nil {
		return err
	}
	if err := s.readTargets(ctx, owner); err != nil {
		return errors.Join(err, s.close(false))
	}
	return nil
}

// readTargets reads what the targets hold into one ledger, whose journal is kept in the folder from
// then on.
func (s *state) readTargets(ctx context.Context, owner *target.Owner) error {
	if err := s.sumSource(ctx, s.folder.Manifest); err != nil {
		return err
	}
	unchanged := s.madeFromSource(s.folder.Manifest)
	var err error
	if s.ledger, err = s.folder.Ledger(unchanged); err != nil {
		return err
	}
	if err := s.checkCard(ctx); err != nil {
		return err
	}
	if s.Push != nil {
		if err := s.checkRoom(ctx); err != nil {
			return err
		}
		if err := s.openRepo(ctx, owner); err != nil {
			return err
		}
	}
	s.ledger.Keep(s.planned())
	if err := s.folder.Save(s.ledger); err != nil {
		return err
	}
	return s.folder.Begin(unchanged)
}

// checkRoom refuses a disk that is too small before a repo is made. A repo that is there may hold
// so much that the rest fits.
func (s *state) checkRoom(ctx context.Context) error {
	tooSmall := s.checkDisk(ctx)
	if tooSmall != nil {
		if _, err := s.Push.Hub.Info(ctx, s.Push.Repo, ""); !errors.Is(err, hub.ErrNotFound) {
			return nil
		}
	}
	return tooSmall
}

// planned returns the test for what this plan can have made. Anyone who can write to a target can
// edit its journal. So an output counts only if the plan has it with the same units; what it holds
// is proved in the end (rebuild.go).
func (j *job) planned() func(ledger.Output) bool {
	planned := map[string]*spans.Output{}
	for _, o := range j.outputs {
		planned[o.Path] = o
	}
	sameUnit := func(done metadata.Unit, u *spans.Unit) bool {
		coded := done.Status == metadata.DF11 && done.Reason == ""
		kept := done.Status == metadata.BF16 && done.Reason != ""
		return done.Path == u.Path && done.NWeights == u.NElems() && (coded || kept)
	}
	return func(done ledger.Output) bool {
		o := planned[done.Path]
		return o != nil && done.SHA256 != "" && slices.EqualFunc(done.Units, o.Units, sameUnit)
	}
}

// openRepo opens the target repo and counts as done what earlier runs, on whatever machine, have
// published there.
func (s *state) openRepo(ctx context.Context, owner *target.Owner) error {
	repo, err := target.OpenRepo(ctx, *s.Push, owner, s.Model)
	if err != nil {
		return err
	}
	s.repo = repo
	m := repo.Found().Manifest
	if err := s.sumSource(ctx, m); err != nil {
		return err
	}
	published, err := repo.Published(ctx, s.madeFromSource(m), s.Part.Whole())
	if err != nil {
		return err
	}
	s.ledger.Adopt(published)
	if s.Finish && !s.ofPlan(m) { // else the journals of the parts are gone
		n, err := repo.Parts()
		if err != nil {
			return err
		}
		return s.checkParts(n, s.ledger)
	}
	return nil
}

// sumSource hashes a local source if a finished conversion by this plan is to be compared with it.
// A commit pins the files of a repo. Nothing pins a local file, and the plan knows nothing of its
// content but the header, so its sum counts as the published one from then on.
func (s *state) sumSource(ctx context.Context, m *metadata.Manifest) error {
	if !s.Model.Local || !s.ofPlan(m) {
		return nil
	}
	files, summed := s.source.Files(), *s.source
	if err := addSums(ctx, s.Source, files, s.Memory.Workers); err != nil {
		return err
	}
	summed.SHA256 = nil
	for _, f := range files {
		summed.SHA256 = append(summed.SHA256, f.SHA256)
	}
	s.source = &summed
	return nil
}

// madeFromSource reports whether a finished conversion by this plan was made from the source as it
// is now. It is true for any other manifest.
func (s *state) madeFromSource(m *metadata.Manifest) bool {
	if !s.Model.Local || !s.ofPlan(m) {
		return true
	}
	return !slices.ContainsFunc(s.source.Files(), func(f model.File) bool {
		return !slices.ContainsFunc(m.Source.Files, func(was metadata.SourceFile) bool {
			return was.Path == f.Path && was.SHA256 == f.SHA256
		})
	})
}

// ofPlan reports whether a manifest is of a finished conversion by the plan of the job.
func (j *job) ofPlan(m *metadata.Manifest) bool {
	return m != nil && m.Plan.Digest == j.Plan.Digest()
}

// freeBuffers lets go what the Hub clients have made to fetch ahead: stages that follow one another
// share the memory.
func (s *state) freeBuffers() {
	s.Source.FreeBuffers()
	if s.repo != nil {
		s.repo.Hub.FreeBuffers()
	}
}

// found lists what the targets that stay held when the run looked at them last.
func (s *state) found() (list []*target.Inspection) {
	if s.folder.Stays {
		list = append(list, s.folder.Inspection)
	}
	if s.repo != nil {
		list = append(list, s.repo.Found())
	}
	return list
}

// close ends the journal and gives the folder back, if the targets are open. With done, nothing but
// the result stays.
func (s *state) close(done bool) error {
	if s.folder == nil {
		return nil
	}
	var err error
	if s.ledger != nil {
		err = s.ledger.Close()
	}
	err = errors.Join(err, s.folder.Close(done))
	s.folder, s.repo, s.ledger, s.copied = nil, nil, nil, nil
	return err
}
