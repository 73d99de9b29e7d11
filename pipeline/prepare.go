package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/target"
)

// conversion is one call of Run: what it converts, where to, and what is done.
type conversion struct {
	Options
	outputs []*spans.Output // all of the plan
	folder  *target.Folder  // that outputs are made in
	repo    *target.Repo    // nil without Push
	ledger  *ledger.Ledger
	sendAll bool // the Hub copies no file by itself
}

// prepare opens the targets, refuses those that hold something else, and finds out what is already
// done.
func prepare(ctx context.Context, opt Options) (*conversion, error) {
	c := &conversion{Options: opt, outputs: spans.Outputs(opt.Plan)}
	root, stays := opt.OutDir, opt.OutDir != ""
	if !stays {
		root = opt.WorkDir
	}
	var err error
	owner := target.NewOwner(opt.Plan, opt.baseModel(), opt.Part.String(), opt.Force,
		c.sourceSum)
	if c.folder, err = target.OpenFolder(ctx, root, stays, owner,
		opt.Model.Perm(opt.Plan)); err != nil {
		return nil, err
	}
	if err := c.open(ctx, owner); err != nil {
		return nil, errors.Join(err, c.close(false))
	}
	return c, nil
}

// open reads what the targets hold into one ledger, whose journal is kept in the folder from then
// on.
func (c *conversion) open(ctx context.Context, owner *target.Owner) error {
	unchanged, err := c.sourceUnchanged(ctx, c.folder.Manifest)
	if err != nil {
		return err
	}
	if c.ledger, err = c.folder.Ledger(unchanged); err != nil {
		return err
	}
	if err := c.checkCard(ctx); err != nil {
		return err
	}
	if c.Push != nil {
		if err := c.checkRoom(ctx); err != nil {
			return err
		}
		if err := c.openRepo(ctx, owner); err != nil {
			return err
		}
	}
	c.dropUnplanned()
	if err := c.folder.Save(c.ledger); err != nil {
		return err
	}
	return c.folder.Begin(unchanged)
}

// checkRoom refuses a disk that is too small before a repo is made. A repo that is there may hold
// so much that the rest fits.
func (c *conversion) checkRoom(ctx context.Context) error {
	_, tooSmall := c.layOut(ctx)
	if tooSmall == nil {
		return nil
	}
	if _, err := c.Push.Hub.Info(ctx, c.Push.Repo, ""); errors.Is(err, hub.ErrNotFound) {
		return tooSmall
	}
	return nil
}

// dropUnplanned forgets what this plan cannot have. Anyone who can write to a target can edit its
// journal. So an output counts only if the plan has it with the same units; what it holds is proved
// in the end (rebuild.go).
func (c *conversion) dropUnplanned() {
	planned := map[string]*spans.Output{}
	for _, o := range c.outputs {
		planned[o.Path] = o
	}
	sameUnit := func(done metadata.Unit, u *spans.Unit) bool {
		coded, kept := done.Status == metadata.DF11 &&
			done.Reason == "", done.Status == metadata.BF16 && done.Reason != ""
		return done.Path == u.Path && done.NWeights == u.NElems() && (coded || kept)
	}
	c.ledger.Keep(func(done ledger.Output) bool {
		o := planned[done.Path]
		return o != nil && done.SHA256 != "" && slices.EqualFunc(done.Units, o.Units, sameUnit)
	})
}

// openRepo opens the target repo and counts as done what earlier runs, on whatever machine, have
// published there.
func (c *conversion) openRepo(ctx context.Context, owner *target.Owner) (err error) {
	if c.repo, err = target.OpenRepo(ctx, *c.Push, owner, c.Model); err != nil {
		return err
	}
	c.Push = &c.repo.Push // by the name that the repo has now
	unchanged, err := c.sourceUnchanged(ctx, c.repo.Found().Manifest)
	if err != nil {
		return err
	}
	published, err := c.repo.Published(ctx, unchanged, c.Part.Whole())
	if err != nil {
		return err
	}
	c.ledger.Adopt(published)
	// else the journals of the parts are gone
	if m := c.repo.Found().Manifest; c.Finish && (m == nil || m.Plan.Digest != c.Plan.Digest()) {
		return c.checkParts()
	}
	return nil
}

// checkParts makes sure that no part has left anything to make.
func (c *conversion) checkParts() error {
	n, err := c.repo.Parts()
	if err != nil {
		return err
	}
	e := &PartsError{N: n, Missing: map[int][]string{}}
	makers := spans.Assign(c.outputs, n)
	for _, o := range c.outputs {
		if len(o.Units) > 0 && !c.ledger.Done(o.Path) {
			e.Missing[makers[o]] = append(e.Missing[makers[o]], o.Path)
		}
	}
	if len(e.Missing) > 0 {
		return e
	}
	return nil
}

// PartsError says which parts are not complete.
type PartsError struct {
	N       int
	Missing map[int][]string // outputs by part
}

func (e *PartsError) Error() string {
	var parts []string
	for i := 1; i <= e.N; i++ {
		if names := e.Missing[i]; len(names) > 0 {
			parts = append(parts, fmt.Sprintf("part %d of %d lacks %s", i, e.N, human.List(names)))
		}
	}
	return "not all parts are there: " + human.List(parts)
}

// sourceUnchanged reports whether the source is still the one that a finished conversion by this
// plan was made from. A commit pins the files of a repo. Nothing pins a local file, and the plan
// knows nothing of its content but the header: it is read, and its sum counts as the published one
// from then on.
func (c *conversion) sourceUnchanged(ctx context.Context, m *metadata.Manifest) (bool, error) {
	if m == nil || m.Plan.Digest != c.Plan.Digest() || !c.Model.Local {
		return true, nil
	}
	files := c.Model.Files()
	if err := addSums(ctx, c.Source, files, c.Memory.Workers); err != nil {
		return false, err
	}
	known, unchanged := *c.Model, true
	known.SHA256 = nil
	for _, w := range files {
		known.SHA256 = append(known.SHA256, w.SHA256)
		same := func(f metadata.SourceFile) bool { return f.Path == w.Path && f.SHA256 == w.SHA256 }
		unchanged = unchanged && slices.ContainsFunc(m.Source.Files, same)
	}
	c.Model = &known
	return unchanged, nil
}

// carried lists the files that the result takes over from the source as they are.
func (o *Options) carried() []plan.File {
	return slices.DeleteFunc(budget.CarriedFiles(o.Plan), func(f plan.File) bool {
		return f.Path == o.Plan.Config
	})
}

// sourceSum is the sha256 of such a file of a local source; "" for any other.
func (o *Options) sourceSum(ctx context.Context, name string) (string, error) {
	carried := slices.ContainsFunc(o.carried(), func(f plan.File) bool { return f.Path == name })
	if !o.Model.Local || !carried {
		return "", nil
	}
	return model.Sum(ctx, o.Source.OpenFile, plan.File{Path: name}, "")
}

// freeBuffers lets go what the Hub clients have made to fetch ahead: stages that follow one another
// share the memory.
func (c *conversion) freeBuffers() {
	c.Source.FreeBuffers()
	if c.repo != nil {
		c.repo.Hub.FreeBuffers()
	}
}

// close ends the journal and gives the folder back. With done, nothing but the result stays.
func (c *conversion) close(done bool) error {
	var err error
	if c.ledger != nil {
		err = c.ledger.Close()
	}
	return errors.Join(err, c.folder.Close(done))
}
