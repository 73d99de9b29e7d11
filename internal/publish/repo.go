package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// A repo is a repo of the Hub that a conversion is published to.
type repo struct {
	from *Folder
	push Push
	run  *Conversion
	// source is asked again, before each commit, whether everyone may read it. visibility is what was
	// decided when the repo was opened.
	source     *model.Model
	visibility Visibility
	main       *branch // that the result goes to
	// that batches go to: main, or a branch of the plan's own, so that readers of main never see a
	// mixture of a finished result and its update
	work *branch
	// main held no model when it was opened, so no earlier run has left such a branch
	fresh    bool
	uploaded sync.Map // hub.Op that puts what this run has uploaded into a commit, by path
}

// openRepo is [Push.Open].
func openRepo(ctx context.Context, push Push, run *Conversion, m *model.Model, from *Folder) (*repo,
	error) {
	r := &repo{from: from, push: push, run: run, source: m}
	err := r.ensure(ctx)
	if err != nil {
		return nil, err
	}
	name := cmp.Or(push.Revision, "main")
	r.main, err = r.open(ctx, name, run.Force)
	if errors.Is(err, hub.ErrRevisionNotFound) && push.Revision == "" {
		if _, err = r.info(ctx); err == nil {
			r.main, err = r.open(ctx, name, run.Force)
		}
	}
	if errors.Is(err, hub.ErrRevisionNotFound) && push.Revision != "" {
		if err = push.Hub.CreateBranch(ctx, r.push.Repo, name, ""); err == nil {
			r.main, err = r.open(ctx, name, run.Force)
		}
	}
	if err == nil && slices.ContainsFunc(r.main.in.Ours(),
		func(f names.File) bool { return r.main.in.torn(f.Path) }) {
		if err = r.takeApart(ctx, r.torn(r.main.in)); err == nil {
			r.main, err = r.open(ctx, name, run.Force)
		}
	}
	r.work = r.main
	r.fresh = err == nil && !r.main.in.isModel()
	return r, err
}

// Where returns the location. Its commit is the newest of the result's branch.
func (r *repo) Where() Location {
	at := r.push.Where()
	at.Commit = r.main.head
	return at
}

// Visibility says who may see the repo, as it was decided when the run opened it.
func (r *repo) Visibility() Visibility { return r.visibility }

// FreeBuffers releases the client's read buffers.
func (r *repo) FreeBuffers() { r.push.Hub.FreeBuffers() }

// Stored opens outputs in the folder, or at the commit that the batches went to.
func (r *repo) Stored(ctx context.Context, outputs []ledger.Output, pieces int64) (*model.DF11,
	error) {
	return stored(ctx, r.from, outputs, pieces, r.push.Hub, r.ref)
}

// ref names an output at the commit that the batches went to.
func (r *repo) ref(o ledger.Output) hub.FileRef {
	f := o.Stored()
	if o.Committed {
		f = o.File()
	}
	return hub.FileRef{Repo: r.push.Repo, Commit: r.work.head, Path: f.Path, Size: f.Size,
		SHA256: f.SHA256, NoCache: true}
}

// Copy asks the Hub to copy large files. It returns the SHA-256 of those it copied.
func (r *repo) Copy(ctx context.Context, m *model.Model, files []plan.File) (map[string]string,
	error) {
	large := r.push.copyable(ctx, m, files)
	if len(large) == 0 {
		return nil, nil
	}
	failed, err := r.push.Hub.DuplicateFiles(ctx, m.ID, r.push.Repo, large)
	if err != nil {
		return nil, err
	}
	done := map[string]string{}
	for _, f := range large {
		if !failed[f.SHA256] {
			done[f.Path] = f.SHA256
		}
	}
	return done, nil
}

// Found is what the branch of the result held when this run looked at it last.
func (r *repo) Found() *Inspection { return r.main.in }

// ensure creates the target if need be and makes sure that we may write to it, that it is not too
// visible, and that it is not the source.
func (r *repo) ensure(ctx context.Context) error {
	visibility, err := r.decide(ctx)
	if err != nil {
		return err
	}
	private := r.push.Private // with nil, the account's default decides
	if !visibility.Open {
		private = new(true)
	}
	info, err := r.info(ctx)
	visibility.Stays = err == nil && info.Private
	r.visibility = visibility
	if errors.Is(err, hub.ErrNotFound) {
		created, createErr := r.push.Hub.CreateRepo(ctx, r.push.Repo, private)
		if createErr != nil {
			return createErr
		}
		if created && visibility.Open {
			return nil // this token made it, so it can write to it
		}
		// it may be public: somebody else was quicker, or the Hub ignored that it should be private
		info, err = r.info(ctx)
	}
	if err != nil {
		return err
	}
	r.push.Repo = info.ID // a renamed repo still answers to its former name
	if r.push.isSource(info.ID, r.source) {
		return &SourceTargetError{Target: info.ID, Flag: "--repo-id"}
	}
	if err := visibility.refuse(info); err != nil {
		return err
	}
	return r.push.Hub.CheckAccess(ctx, r.push.Repo)
}

// decide says who may see the target. It asks about a local source again: since that was opened, its
// weights were hashed.
func (r *repo) decide(ctx context.Context) (Visibility, error) {
	if r.source.Local {
		return r.push.VisibilityNow(ctx, r.source)
	}
	return r.push.Visibility(ctx, r.source), nil
}

// lookTries is how often a run asks, a second apart, for main of a repo that has none.
const lookTries = 10

// info reads what main holds. hfd makes a repo before its branch (see the package
// comment of hub), so while another run creates the repo, there's one without main for a moment.
func (r *repo) info(ctx context.Context) (*hub.RepoInfo, error) {
	for try := 1; ; try++ {
		info, err := r.push.Hub.Info(ctx, r.push.Repo, "")
		if !errors.Is(err, hub.ErrRevisionNotFound) || try == lookTries {
			return info, err
		}
		if err := r.push.Hub.Pause(ctx, "someone creates "+r.push.Repo, time.Second); err != nil {
			return nil, err
		}
	}
}

// isSource reports whether the weights come from a repo of the target's Hub.
func (p Push) isSource(id string, m *model.Model) bool {
	return m.Origin != nil && strings.EqualFold(id, m.Origin.Repo) &&
		m.Origin.Endpoint == p.Hub.Endpoint()
}

// Published lists the outputs that earlier runs have published. It reads the manifest of a finished
// conversion. Unless that manifest is of this plan, it also reads the journal of the part or, for
// the whole, the journals of all parts of any split: an output doesn't depend on the run that made
// it. While main holds another finished model, work goes to the plan's own branch, which is always
// ours.
func (r *repo) Published(ctx context.Context, whole bool) ([]ledger.Output, error) {
	if r.main.in.ByPlan {
		return r.run.held(r.main.in.claims[names.Manifest], r.main.in), nil
	}
	if r.main.in.isModel() {
		name := r.workBranch()
		err := r.push.Hub.CreateBranch(ctx, r.push.Repo, name, r.main.head)
		if err != nil {
			return nil, err
		}
		if r.work, err = r.open(ctx, name, true); err != nil {
			return nil, err
		}
	}
	var published []ledger.Output
	for name, claim := range r.work.in.claims {
		if name == r.work.at.journal || whole && path.Dir(name) == names.JournalDir ||
			name == names.Manifest {
			published = append(published, r.run.held(claim, r.work.in)...)
		}
	}
	return published, nil
}

// Parts returns the number of parts that most journals name.
func (r *repo) Parts() (n int, err error) {
	there := map[int]int{} // journals by split
	for _, name := range slices.Sorted(maps.Keys(r.work.in.versions)) {
		if m := partJournal.FindStringSubmatch(name); m != nil {
			of, _ := strconv.Atoi(m[1])
			if there[of]++; there[of] >= there[n] {
				n = of
			}
		}
	}
	if n == 0 {
		return 0, fmt.Errorf("nothing to finish: %s has no parts yet; make each with --push --shard 1/N",
			r.push.Repo)
	}
	return n, spans.Part{I: 1, N: n}.Check()
}

// partJournal matches the journals of a split conversion.
var partJournal = regexp.MustCompile(`^\.df11/part-\d+-of-(\d+)\.json$`)
