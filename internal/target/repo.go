package target

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// Push says where a conversion is published.
type Push struct {
	Hub *hub.Client
	// Repo is the target, "namespace/name". Revision is its branch, "" for main.
	Repo     string
	Revision string
	// Private asks for a private repo, if it has to be created; nil leaves the choice to the Hub's default.
	Private *bool
	// Public allows a public target for a private or gated source.
	Public bool
}

// VisibilityError says that publishing would show a private or gated model to everybody.
type VisibilityError struct{ Source, Target string }

func (e *VisibilityError) Error() string {
	return fmt.Sprintf("%s is private or gated, but %s is public", e.Source, e.Target)
}

// A Repo is a repo of the Hub that a conversion is published to. Upload may be called by several goroutines; one at a time
// calls everything that commits.
type Repo struct {
	Push
	owner       Owner
	part        string // names the journal
	*inspection        // of main, before this run
	main, work  *tree  // of main and of the branch that is worked on, before this run
	branches    branches
	uploaded    uploads
}

// OpenRepo creates or opens a target before any work, and refuses one without access, with the wrong visibility, or with other
// weights. part names this run's journal.
func OpenRepo(ctx context.Context, push Push, w Owner, part string, m *model.Model, src model.Source) (*Repo, error) {
	main := cmp.Or(push.Revision, "main")
	r := &Repo{Push: push, owner: w, part: part}
	if err := r.ensure(ctx, m, src); err != nil {
		return nil, err
	}
	r.branches = branches{push: r.Push, main: main, work: main, inspected: map[string]inspected{}}
	err := r.inspect(ctx)
	if errors.Is(err, hub.ErrRevisionNotFound) && push.Revision != "" {
		if err = r.Hub.CreateBranch(ctx, r.Repo, main, ""); err == nil {
			err = r.inspect(ctx)
		}
	}
	if err != nil {
		return nil, err
	}
	r.main, r.inspection = r.work, r.branches.knows(main).inspection
	return r, nil
}

// inspect reads the branch that is worked on at its head, and refuses it if it is not this conversion's.
func (r *Repo) inspect(ctx context.Context) (err error) {
	if r.branches.parent, err = r.Hub.Head(ctx, r.Repo, r.branches.work); err != nil {
		return err
	}
	if r.work, err = r.readTree(ctx, r.branches.parent); err != nil {
		return err
	}
	in, err := r.owner.inspect(ctx, r.work.snapshot())
	if err == nil {
		r.branches.note(r.branches.work, r.branches.parent, in)
	}
	return err
}

// maxJournalBytes bounds a journal or a manifest that is read whole.
const maxJournalBytes = 256 << 20

// A tree is a repo at one commit.
type tree struct {
	push   Push
	commit string
	files  map[string]hub.FileInfo
}

func (p Push) readTree(ctx context.Context, commit string) (*tree, error) {
	files, err := p.Hub.Tree(ctx, p.Repo, commit)
	if err != nil {
		return nil, err
	}
	return &tree{p, commit, files}, nil
}

// snapshot has all files. The version of a large file is its sha256.
func (t *tree) snapshot() snapshot {
	versions := map[string]string{}
	for name, e := range t.files {
		versions[name] = cmp.Or(e.SHA256, e.BlobID)
	}
	return snapshot{where: t.push.Repo, versions: versions, read: t.read}
}

func (t *tree) read(ctx context.Context, name string) ([]byte, error) {
	e, ok := t.files[name]
	if !ok {
		return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	f := hub.FileInfo{Path: name, Size: e.Size, SHA256: e.SHA256, BlobID: e.BlobID}
	return t.push.Hub.ReadFile(ctx, f.Ref(t.push.Repo, t.commit), maxJournalBytes)
}

// ensure creates the target if need be and makes sure that we may write to it, that it is not too visible, and that it
// is not the source.
func (r *Repo) ensure(ctx context.Context, m *model.Model, src model.Source) error {
	closed := m.Private || m.Gated != ""
	info, err := r.Hub.Info(ctx, r.Repo, "")
	if errors.Is(err, hub.ErrNotFound) {
		created, createErr := r.create(ctx, closed)
		if createErr != nil || created {
			return createErr
		}
		info, err = r.Hub.Info(ctx, r.Repo, "") // somebody else was quicker, and may have made it public
	}
	if err != nil {
		return err
	}
	r.Repo = info.ID // one that was renamed still answers to its former name
	switch {
	case r.isSource(info.ID, src):
		return &SourceTargetError{info.ID}
	case closed && !info.Private && info.Gated == "" && !r.Public:
		return &VisibilityError{m.ID, r.Repo}
	}
	return r.Hub.CheckAccess(ctx, r.Repo)
}

// create makes the target, unless it is there by now. It is private for a source that is closed, if nothing else was asked for.
func (r *Repo) create(ctx context.Context, closed bool) (created bool, err error) {
	private := r.Private
	if private == nil && closed && !r.Public {
		private = new(bool)
		*private = true
	}
	if created, err = r.Hub.CreateRepo(ctx, r.Repo, private); err != nil || !created {
		return created, err
	}
	return true, r.Hub.CheckAccess(ctx, r.Repo)
}

// isSource reports whether a repo of the target's Hub is the one that the weights come from.
func (r *Repo) isSource(id string, src model.Source) bool {
	c := src.Hub()
	return strings.EqualFold(id, r.owner.Source) && (c == nil || c.Endpoint() == r.Hub.Endpoint())
}

// Ledger reads what earlier runs have published: from the manifest of a finished conversion by this plan, unless the source has
// changed since, else from the journal. While main holds another finished conversion, work goes to a branch of the plan's own.
func (r *Repo) Ledger(ctx context.Context, unchanged bool) (*ledger.Ledger, error) {
	if unchanged {
		if l := ledger.OfManifest(r.Manifest, r.owner.Digest, r.part, false); l != nil {
			l.Keep(r.confirms)
			return l, nil
		}
	}
	finished := r.Manifest != nil
	if !finished {
		var err error
		if finished, err = r.work.hasConfig(ctx); err != nil {
			return nil, err
		}
	}
	if finished {
		r.branches.work = r.branches.ownPrefix() + r.owner.Digest
		if err := r.Hub.CreateBranch(ctx, r.Repo, r.branches.work, r.branches.parent); err != nil {
			return nil, err
		}
		if err := r.inspect(ctx); err != nil {
			return nil, err
		}
	}
	return r.readLedger(ctx, r.part)
}

// hasConfig reports whether the tree has a config.json of DF11, as a finished conversion by whatever program has.
func (t *tree) hasConfig(ctx context.Context) (bool, error) {
	b, err := t.read(ctx, "config.json")
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return strings.Contains(string(b), `"dfloat11_config"`), nil
}

// readLedger reads a part's journal from the repo. What the tree does not confirm is not in the ledger.
func (r *Repo) readLedger(ctx context.Context, part string) (*ledger.Ledger, error) {
	l := ledger.New(r.owner.Digest, part, false)
	b, err := r.work.read(ctx, path.Join(journalDir, journalName(part)))
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if err != nil {
		return nil, err
	}
	if err := l.Read(b); err != nil {
		return nil, fmt.Errorf("journal of %s: %w", r.Repo, err)
	}
	l.Keep(r.confirms)
	return l, nil
}

// confirms reports whether the tree holds an output.
func (r *Repo) confirms(o ledger.Output) bool { return holds(r.work.files, o) }

// Parts reads the journals of all parts and says how many there are.
func (r *Repo) Parts(ctx context.Context) (parts []*ledger.Ledger, n int, err error) {
	if n, err = splitOf(r.work.files); err != nil {
		return nil, 0, fmt.Errorf("finish %s: %w", r.Repo, err)
	}
	for i := 1; i <= n; i++ {
		l, err := r.readLedger(ctx, spans.Part{I: i, N: n}.String())
		if err != nil {
			return nil, 0, err
		}
		parts = append(parts, l)
	}
	return parts, n, nil
}

// partJournal matches the journals of a split conversion.
var partJournal = regexp.MustCompile(`^\.df11/part-(\d+)-of-(\d+)\.json$`)

// splitOf finds out into how many parts the conversion in a tree was split.
func splitOf(tree map[string]hub.FileInfo) (int, error) {
	n := 0
	for p := range tree {
		m := partJournal.FindStringSubmatch(p)
		if m == nil {
			continue
		}
		of, err := strconv.Atoi(m[2])
		if err == nil {
			err = spans.Part{I: 1, N: of}.Check()
		}
		if err != nil {
			return 0, fmt.Errorf("%s: %w", p, err)
		}
		if n != 0 && of != n {
			return 0, fmt.Errorf("%s: the journals are of different splits", p)
		}
		n = of
	}
	if n == 0 {
		return 0, errors.New("no part has been published yet")
	}
	return n, nil
}

// Ref names a committed output.
func (r *Repo) Ref(o ledger.Output) hub.FileRef {
	r.branches.mu.Lock()
	defer r.branches.mu.Unlock()
	return hub.FileRef{Repo: r.Repo, Commit: r.branches.parent, Path: o.Path, Size: o.Size, SHA256: o.SHA256, NoCache: true}
}

// RemoveBranches removes the branches that main has gone past, once it is finished.
func (r *Repo) RemoveBranches(ctx context.Context) error {
	return r.branches.removeOwn(ctx, r.owner.Digest)
}

// LastCommit is the commit of the branch that holds the finished result, "" before Finish.
func (r *Repo) LastCommit() string {
	r.branches.mu.Lock()
	defer r.branches.mu.Unlock()
	return r.branches.last
}

// URL is where a person finds the result.
func (r *Repo) URL() string { return r.Hub.Endpoint() + "/" + r.Repo }
