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

// openTargets opens the targets of a job, refuses those that hold something else, and finds out
// what is done. With sendAll, no server is asked to copy files.
func openTargets(ctx context.Context, j *job, sendAll bool) (*targets, error) {
	root, stays := j.OutDir, j.OutDir != ""
	if !stays {
		root = j.WorkDir
	}
	from, local := publish.OriginOf(j.Model), (*localSource)(nil)
	if from.Local {
		local = newLocalSource(j, filepath.Join(root, names.StateDir))
		from.Source = local
	}
	run := publish.NewConversion(j.Plan, from, j.Part.String(), j.Force)
	run.Memory, run.Ref = j.Memory.Budget, j.where().Ref()
	folder, err := publish.OpenFolder(ctx, root, stays, run, j.Model.Perm(root))
	if err != nil {
		return nil, err
	}
	if err := folder.ReadOnly(); err != nil && j.Push != nil { // the repo may need files from it
		return nil, errors.Join(err, folder.Close(false))
	}
	if folder.Unlocked() {
		j.Log.Warn("the file system has no locks, so use the folder from one run at a time", "folder", root)
	}
	t := &targets{folder: folder, ledger: folder.Ledger()}
	if err := readTargets(ctx, j, t, run, sendAll); err != nil {
		return nil, errors.Join(err, t.close(false))
	}
	if local != nil { // from now on, its sums count as published
		j.Model = local.model
	}
	if err := begin(ctx, j, t, run, sendAll); err != nil {
		return nil, errors.Join(err, t.close(false))
	}
	return t, nil
}

// readTargets checks what can be checked before any work, and reads what the targets hold into one
// ledger.
func readTargets(ctx context.Context, j *job, t *targets, run *publish.Conversion,
	sendAll bool) error {
	err := t.folder.Clear()
	if err != nil {
		return err
	}
	if t.advice, err = checkLimits(ctx, j); err != nil {
		return err
	}
	j.checkNames(ctx)
	if err := j.checkCard(ctx); err != nil {
		return err
	}
	// an existing target may hold so much of the result that the rest fits
	if err := checkDisk(ctx, j, t, sendAll); err != nil && (j.Push == nil || j.Push.Empty(ctx)) {
		return err
	}
	return openRemote(ctx, j, t, run)
}

// begin keeps of the ledger what this plan can have made, and says what the run will replace and
// remove. From then on the folder keeps its journal.
func begin(ctx context.Context, j *job, t *targets, run *publish.Conversion, sendAll bool) error {
	t.ledger.Keep(j.planned())
	if err := takeOver(ctx, j, t); err != nil {
		return err
	}
	if err := checkDisk(ctx, j, t, sendAll); err != nil {
		return err
	}
	for _, found := range t.found() {
		if given := found.Given(); len(given) > 0 {
			j.Log.Warn("--force overwrites these files in " + found.Where +
				", which no run wrote for this result: " + strings.Join(given, ", "))
		}
		if gone := run.Removes(found); len(gone) > 0 && j.Part.Whole() {
			j.Log.Warn("this update will remove these files of the earlier result from " +
				found.Where + ": " + strings.Join(gone, ", "))
		}
	}
	if err := t.folder.Save(); err != nil {
		return err
	}
	return t.folder.Begin()
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

// checkLimits refuses to publish a result that the Hub wouldn't take. It returns warnings about
// what the Hub advises against.
func checkLimits(ctx context.Context, j *job) (advice []string, err error) {
	if j.Push == nil {
		return nil, nil
	}
	total := spans.LikelyBytes(j.outputs)
	refused, advised := hubProblems(j.Plan, j.outputs)
	if len(refused) > 0 {
		return nil, &LimitError{refused[0]}
	}
	private := hubrules.CheckPrivate(total)
	if len(private) > 0 && !j.Push.Visibility(ctx, j.Model).Open {
		advised = append(advised, private...)
	}
	for _, p := range advised {
		advice = append(advice, p.Text)
	}
	return advice, nil
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
func openRemote(ctx context.Context, j *job, t *targets, run *publish.Conversion) error {
	if j.Push == nil {
		return nil
	}
	var err error
	if t.to, err = j.Push.Open(ctx, run, j.Model, t.folder); err != nil {
		return err
	}
	published, err := t.to.Published(ctx, j.Part.Whole())
	if err != nil {
		return err
	}
	t.ledger.Adopt(published)
	if j.Finish && !t.to.Found().ByPlan { // else the journals of the parts are gone
		n, err := t.to.Parts()
		if err != nil {
			return err
		}
		return j.checkParts(n, t.ledger)
	}
	return nil
}
