package convert

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/hubrules"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/publish"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// A state is a job with its targets open.
type state struct {
	*job
	*lessons
	targets
	notes []string // warnings about what the Hub advises against
}

// lessons are what failed attempts have taught a run.
type lessons struct {
	sendAll bool // don't ask the Hub to copy files
	// source files that couldn't be rebuilt once, by path
	failed map[string]bool
}

// open opens the targets, refuses those that hold something else, and finds out what is done.
func (j *job) open(ctx context.Context, l *lessons) (_ *state, err error) {
	s := &state{job: j, lessons: l}
	root, stays := s.OutDir, s.OutDir != ""
	if !stays {
		root = s.WorkDir
	}
	from, local := publish.OriginOf(s.Model), (*localSource)(nil)
	if from.Local {
		local = &localSource{j, filepath.Join(root, names.StateDir), s.Model}
		from.Source = local
	}
	run := publish.NewConversion(s.Plan, from, s.Part.String(), s.Force)
	run.Memory, run.Ref = s.Memory.Budget, s.where().Ref()
	if s.folder, err = publish.OpenFolder(ctx, root, stays, run, s.Model.Perm(root)); err != nil {
		return nil, err
	}
	if s.folder.Unlocked() {
		s.Log.Warn("the file system has no locks, so use the folder from one run at a time", "folder", root)
	}
	if err := s.openTargets(ctx, run); err != nil {
		return nil, errors.Join(err, s.close(false))
	}
	if local != nil { // from now on, its sums count as published
		s.Model = local.model
	}
	if err := s.begin(ctx, run); err != nil {
		return nil, errors.Join(err, s.close(false))
	}
	return s, nil
}

// openTargets reads what the targets hold into one ledger.
func (s *state) openTargets(ctx context.Context, run *publish.Conversion) error {
	s.ledger = s.folder.Ledger()
	if err := s.folder.Clear(); err != nil {
		return err
	}
	if err := s.checkLimits(ctx); err != nil {
		return err
	}
	s.checkNames(ctx)
	if err := s.checkCard(ctx); err != nil {
		return err
	}
	// an existing target may hold so much of the result that the rest fits
	if err := s.checkDisk(ctx); err != nil && (s.Push == nil || s.Push.Empty(ctx)) {
		return err
	}
	return s.openRemote(ctx, run)
}

// begin keeps of the ledger what this plan can have made, and says what the run will replace and
// remove. From then on the folder keeps its journal.
func (s *state) begin(ctx context.Context, run *publish.Conversion) error {
	s.ledger.Keep(s.planned())
	if err := takeOver(ctx, s); err != nil {
		return err
	}
	if err := s.checkDisk(ctx); err != nil {
		return err
	}
	for _, found := range s.found() {
		if given := found.Given(); len(given) > 0 {
			s.Log.Warn("--force overwrites these files in " + found.Where +
				", which no run wrote for this result: " + strings.Join(given, ", "))
		}
		if gone := run.Removes(found); len(gone) > 0 && s.Part.Whole() {
			s.Log.Warn("this update will remove these files of the earlier result from " +
				found.Where + ": " + strings.Join(gone, ", "))
		}
	}
	if err := s.folder.Save(); err != nil {
		return err
	}
	return s.folder.Begin()
}

// A LimitError reports files that the Hub wouldn't take.
type LimitError struct{ hubrules.Problem }

func (e *LimitError) Error() string { return e.Text }

// Hint returns what to do about it.
func (e *LimitError) Hint() hint.Hint { return e.Problem.Hint }

func (e *LimitError) Unwrap() error { return hub.ErrTooMany }

// CheckLimits returns a LimitError if the Hub wouldn't take these outputs of a plan.
func CheckLimits(p *plan.Plan, outputs []*spans.Output) error {
	if refused, _ := hubProblems(p, outputs); len(refused) > 0 {
		return &LimitError{refused[0]}
	}
	return nil
}

func hubProblems(p *plan.Plan, outputs []*spans.Output) (refused, advised []hubrules.Problem) {
	var sizes []int64
	for _, o := range outputs {
		sizes = append(sizes, o.LikelyBytes())
	}
	return budget.HubProblems(p, sizes)
}

// checkLimits refuses to publish a result that the Hub wouldn't take, and warns of one that it
// advises against.
func (s *state) checkLimits(ctx context.Context) error {
	if s.Push == nil {
		return nil
	}
	total := spans.LikelyBytes(s.outputs)
	refused, advised := hubProblems(s.Plan, s.outputs)
	private := hubrules.CheckPrivate(total)
	if len(private) > 0 && !s.Push.Visibility(ctx, s.Model).Open {
		advised = append(advised, private...)
	}
	for _, p := range advised {
		s.notes = append(s.notes, p.Text)
	}
	if len(refused) > 0 {
		return &LimitError{refused[0]}
	}
	return nil
}

// planned returns a test for outputs that this plan can have made. Anyone who can write to a target
// can edit its journal. So an output counts only if the plan has it with the same units, and
// rebuild.go proves what it holds.
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

// openRemote opens the place to publish, and counts as done what earlier runs on any machine have
// published there.
func (s *state) openRemote(ctx context.Context, run *publish.Conversion) error {
	if s.Push == nil {
		return nil
	}
	var err error
	if s.to, err = s.Push.Open(ctx, run, s.Model, s.folder); err != nil {
		return err
	}
	published, err := s.to.Published(ctx, s.Part.Whole())
	if err != nil {
		return err
	}
	s.ledger.Adopt(published)
	if s.Finish && !s.to.Found().ByPlan { // else the journals of the parts are gone
		n, err := s.to.Parts()
		if err != nil {
			return err
		}
		return s.checkParts(n, s.ledger)
	}
	return nil
}
