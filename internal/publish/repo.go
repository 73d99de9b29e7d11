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

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// Push says where a conversion is published.
type Push struct {
	Hub *hub.Client
	// Repo is the target, "namespace/name". Revision is its branch, "" for main.
	Repo     string
	Revision string
	// Private asks for a private repo, or with false allows a public one. With nil, the source
	// decides.
	Private *bool
	// Decided is called once it's known who may see the target; it may be nil.
	Decided func(repo string, v Visibility)
}

// A Repo is a repo of the Hub that a conversion is published to. Upload may be called by several
// goroutines; one at a time calls everything that commits.
type Repo struct {
	Push
	owner *Owner
	main  *branch // that the result goes to
	// that batches go to: main, or a branch of the plan's own while a finished repo is refreshed
	work     *branch
	fresh    bool     // main held no model when it was opened, so that no other branch refreshes it
	uploaded sync.Map // hub.Op that puts what this run has uploaded into a commit, by path
}

// A branch is what a run knows of a branch of the target.
type branch struct {
	name string
	head string // the newest commit that the run knows
	seen string // the commit that the run has judged last, or has made since
	*judge
	*Inspection
}

// OpenRepo creates or opens a target before any work, and refuses one without access, with the
// wrong visibility, or with files of others in the way.
func OpenRepo(ctx context.Context, push Push, w *Owner, m *model.Model) (*Repo, error) {
	r := &Repo{Push: push, owner: w}
	if err := r.ensure(ctx, m); err != nil {
		return nil, err
	}
	var err error
	name := cmp.Or(push.Revision, "main")
	r.main, err = r.open(ctx, name, w.Force)
	if errors.Is(err, hub.ErrRevisionNotFound) && push.Revision != "" {
		if err = r.Hub.CreateBranch(ctx, r.Repo, name, ""); err == nil {
			r.main, err = r.open(ctx, name, w.Force)
		}
	}
	if err == nil && slices.ContainsFunc(slices.Collect(maps.Keys(r.main.Ours)), r.main.torn) {
		if err = r.takeApart(ctx, r.main.Inspection); err == nil {
			r.main, err = r.open(ctx, name, w.Force)
		}
	}
	r.work = r.main
	r.fresh = err == nil && !r.main.isModel()
	return r, err
}

// open reads a branch at its head, and refuses it if files of others are in the way, unless forced.
func (r *Repo) open(ctx context.Context, name string, force bool) (*branch, error) {
	j := r.owner.judge(names.JournalDir, force)
	info, in, err := r.inspect(ctx, j, name, nil)
	if info == nil {
		return nil, err
	}
	return &branch{name: name, head: info.SHA, seen: info.SHA, judge: j, Inspection: in}, err
}

// inspect judges what has changed on a branch since the last inspection, nil when a run begins.
func (p Push) inspect(ctx context.Context, j *judge, name string,
	last *Inspection) (info *hub.RepoInfo, in *Inspection, err error) {
	if info, err = p.Hub.Info(ctx, p.Repo, name); err != nil {
		return nil, nil, err
	}
	s := p.snapshotOf(info.SHA, info.ByPath())
	if slices.Contains(slices.Collect(maps.Values(s.versions)), "") { // as some hubs list files
		s, err = p.snapshot(ctx, info.SHA)
	}
	if err == nil {
		in, err = j.inspect(ctx, s, last)
	}
	return info, in, err
}

// Found is what the branch of the result held when this run looked at it last.
func (r *Repo) Found() *Inspection { return r.main.Inspection }

// maxJournalBytes bounds a journal, a manifest or a small file that is read whole.
const maxJournalBytes = 256 << 20

// A commit of a repo holds files.
type commit struct {
	Push
	id    string
	files map[string]hub.FileInfo
}

// snapshot has all files of a commit.
func (p Push) snapshot(ctx context.Context, id string) (snapshot, error) {
	files, err := p.Hub.Tree(ctx, p.Repo, id)
	return p.snapshotOf(id, files), err
}

func (p Push) snapshotOf(id string, files map[string]hub.FileInfo) snapshot {
	c := commit{p, id, files}
	s := snapshot{p.Repo, map[string]string{}, map[string]names.File{}, c}
	for name, f := range files {
		s.versions[name], _ = c.version(name)
		s.listed[name] = f.File()
	}
	return s
}

// version returns the SHA-256 of a large file, and git's hash of a small one.
func (c commit) version(name string) (string, error) {
	f := c.files[name]
	return cmp.Or(f.SHA256, f.BlobID), nil
}

func (c commit) read(ctx context.Context, name string) ([]byte, error) {
	return c.Hub.ReadFile(ctx, c.files[name].Ref(c.Repo, c.id), maxJournalBytes)
}

func (c commit) file(ctx context.Context, name, _ string) (names.File, error) {
	f := c.files[name].File()
	if f.SHA256 != "" {
		return f, nil
	}
	b, err := c.read(ctx, name)
	f.SHA256 = sumOf(b)
	return f, err
}

// ensure creates the target if need be and makes sure that we may write to it, that it is not too
// visible, and that it is not the source.
func (r *Repo) ensure(ctx context.Context, m *model.Model) error {
	visibility := r.Visibility(ctx, m)
	if r.Decided != nil {
		r.Decided(r.Repo, visibility)
	}
	private := r.Private // with nil, the account's default decides
	if !visibility.Open {
		private = new(true)
	}
	info, err := r.Hub.Info(ctx, r.Repo, "")
	if errors.Is(err, hub.ErrNotFound) {
		created, createErr := r.Hub.CreateRepo(ctx, r.Repo, private)
		if createErr != nil {
			return createErr
		}
		if created && visibility.Open {
			return nil // by whom it may be written to
		}
		// it may be public: somebody else was quicker, or the Hub ignored that it should be private
		info, err = r.Hub.Info(ctx, r.Repo, "")
	}
	if err != nil {
		return err
	}
	r.Repo = info.ID // a renamed repo still answers to its former name
	if r.isSource(info.ID, m) {
		return &SourceTargetError{info.ID}
	}
	if err := visibility.refuse(info); err != nil {
		return err
	}
	return r.Hub.CheckAccess(ctx, r.Repo)
}

// isSource reports whether the weights come from a repo of the target's Hub.
func (r *Repo) isSource(id string, m *model.Model) bool {
	return m.Origin != nil && strings.EqualFold(id, m.Origin.Repo) &&
		m.Origin.Endpoint == r.Hub.Endpoint()
}

// Published lists the outputs that earlier runs have published. It reads the manifest of a finished
// conversion. Unless that is by this plan, it also reads the journal of the part or, for the whole,
// the journals of all parts of any split: an output doesn't depend on the run that made it. While
// main holds another finished model, work goes to the plan's own branch, which is always ours.
func (r *Repo) Published(ctx context.Context, whole bool) ([]ledger.Output, error) {
	if r.main.Made {
		return r.main.held(r.main.claims[names.Manifest]), nil
	}
	if r.main.isModel() {
		name := r.workBranch()
		err := r.Hub.CreateBranch(ctx, r.Repo, name, r.main.head)
		if err != nil {
			return nil, err
		}
		if r.work, err = r.open(ctx, name, true); err != nil {
			return nil, err
		}
	}
	var published []ledger.Output
	for name, c := range r.work.claims {
		if name != r.work.journal && !(whole && path.Dir(name) == names.JournalDir) &&
			name != names.Manifest {
			continue
		}
		published = append(published, r.work.held(c)...)
	}
	return published, nil
}

// held returns the outputs of a claim that the branch has, and that the plan makes from the same
// bytes.
func (b *branch) held(c ledger.Claim) []ledger.Output {
	return slices.DeleteFunc(c.Done(b.Digest, b.Digests),
		func(o ledger.Output) bool { return !b.Holds(o.There()) })
}

// Parts is the number of parts of the split that most journals are of.
func (r *Repo) Parts() (n int, err error) {
	there := map[int]int{} // journals by split
	for _, name := range slices.Sorted(maps.Keys(r.work.versions)) {
		if m := partJournal.FindStringSubmatch(name); m != nil {
			of, _ := strconv.Atoi(m[1])
			if there[of]++; there[of] >= there[n] {
				n = of
			}
		}
	}
	if n == 0 {
		return 0, fmt.Errorf("nothing to finish: %s has no parts yet; make each with --push --shard 1/N",
			r.Repo)
	}
	return n, spans.Part{I: 1, N: n}.Check()
}

// partJournal matches the journals of a split conversion.
var partJournal = regexp.MustCompile(`^\.df11/part-\d+-of-(\d+)\.json$`)

// Ref names a committed output. Nothing may be committed meanwhile.
func (r *Repo) Ref(o ledger.Output) hub.FileRef {
	return hub.FileRef{Repo: r.Repo, Commit: r.work.head, Path: o.There().Path, Size: o.Size,
		SHA256: o.SHA256, NoCache: true}
}

// LastCommit is the newest commit that the run knows of the result's branch. After Finish, it holds
// the result.
func (r *Repo) LastCommit() string { return r.main.head }

// URL is where a person finds the result.
func (p Push) URL() string { return p.Hub.Endpoint() + "/" + p.Repo }
