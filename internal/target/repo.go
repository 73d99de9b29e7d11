package target

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
	// Private asks for a private repo, or with false for a public one, also for a private or gated
	// source. With nil, the target of such a source is private, and any other one as the Hub has it
	// by default.
	Private *bool
}

// VisibilityError says that strangers can open a target that is there, although its source is
// private or gated, or a private target was asked for.
type VisibilityError struct {
	Target string
	Source string // what they would see; "" if its owner shows it to everybody
}

func (e *VisibilityError) Error() string {
	if e.Source == "" {
		return e.Target + " is there already, and is not private"
	}
	return fmt.Sprintf("%s is private or gated, but everybody can open %s", e.Source, e.Target)
}

// A Repo is a repo of the Hub that a conversion is published to. Upload may be called by several
// goroutines; one at a time calls everything that commits.
type Repo struct {
	Push
	owner *Owner
	main  *branch // that the result goes to
	// that batches go to: main, or a branch of the plan's own while a finished repo is refreshed
	work     *branch
	uploaded sync.Map // hub.Op that puts what this run has uploaded into a commit, by path
}

// A branch is what a run knows of a branch of the target.
type branch struct {
	name  string
	head  string // the newest commit that the run knows
	seen  string // the commit that the run has judged last, or has made since
	moved bool   // by a commit of this run
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
	r.work = r.main
	return r, err
}

// open reads a branch at its head, and refuses it if files of others are in the way, unless forced.
func (r *Repo) open(ctx context.Context, name string, force bool) (*branch, error) {
	j := r.owner.judge(names.JournalDir, force)
	head, in, err := r.inspect(ctx, j, name, nil, nil)
	return &branch{name: name, head: head, seen: head, judge: j, Inspection: in}, err
}

// inspect judges what has changed on a branch since the last inspection, nil when a run begins.
func (p Push) inspect(ctx context.Context, j *judge, name string, last *Inspection,
	made map[string]string) (head string, in *Inspection, err error) {
	if head, err = p.Hub.Head(ctx, p.Repo, name); err != nil {
		return "", nil, err
	}
	s, err := p.snapshot(ctx, head)
	if err == nil {
		in, err = j.inspect(ctx, s, last, made)
	}
	return head, in, err
}

// Found is what the branch of the result held when this run looked at it last.
func (r *Repo) Found() *Inspection { return r.main.Inspection }

// maxJournalBytes bounds a journal, a manifest or a small file that is read whole.
const maxJournalBytes = 256 << 20

// A repoSnapshot is what a commit of a repo holds. The version of a large file is its sha256, that
// of a small one git's hash: that is what pins it at a source, too.
type repoSnapshot struct {
	Push
	commit string
	files  map[string]hub.FileInfo
	hashes map[string]string
}

// snapshot has all files of a commit.
func (p Push) snapshot(ctx context.Context, commit string) (repoSnapshot, error) {
	files, err := p.Hub.Tree(ctx, p.Repo, commit)
	s := repoSnapshot{p, commit, files, map[string]string{}}
	for name, f := range files {
		s.hashes[name] = cmp.Or(f.SHA256, f.BlobID)
	}
	return s, err
}

func (s repoSnapshot) where() string { return s.Repo }

func (s repoSnapshot) versions() map[string]string { return s.hashes }

func (s repoSnapshot) list() map[string]names.File {
	files := map[string]names.File{}
	for name, f := range s.files {
		files[name] = f.File()
	}
	return files
}

func (s repoSnapshot) version(name string) (string, error) { return s.hashes[name], nil }

func (s repoSnapshot) read(ctx context.Context, name string) ([]byte, error) {
	return s.Hub.ReadFile(ctx, s.files[name].Ref(s.Repo, s.commit), maxJournalBytes)
}

func (s repoSnapshot) sum(ctx context.Context, name string) (string, error) {
	if f := s.files[name]; f.SHA256 != "" {
		return f.SHA256, nil
	}
	b, err := s.read(ctx, name)
	return sumOf(b), err
}

func (repoSnapshot) equals(context.Context, string, string) (bool, error) { return false, nil }

// holds reports whether a branch has an output.
func (in *Inspection) holds(o ledger.Output) bool { return in.files[o.Path] == o.File() }

// gatedManual is a public repo whose owner lets in everybody by hand. With "auto", whoever asks is
// let in.
const gatedManual = "manual"

// ensure creates the target if need be and makes sure that we may write to it, that it is not too
// visible, and that it is not the source.
func (r *Repo) ensure(ctx context.Context, m *model.Model) error {
	private, closed := r.Private, m.Private || m.Gated != ""
	if private == nil && closed {
		private = &closed
	}
	info, err := r.Hub.Info(ctx, r.Repo, "")
	if errors.Is(err, hub.ErrNotFound) {
		created, createErr := r.Hub.CreateRepo(ctx, r.Repo, private)
		if createErr != nil {
			return createErr
		}
		if created {
			return r.Hub.CheckAccess(ctx, r.Repo)
		}
		// somebody else was quicker, and may have made it public
		info, err = r.Hub.Info(ctx, r.Repo, "")
	}
	if err != nil {
		return err
	}
	r.Repo = info.ID // one that was renamed still answers to its former name
	switch {
	case r.isSource(info.ID, m):
		return &SourceTargetError{info.ID}
	case closed && !info.Private && info.Gated != gatedManual && r.Private == nil:
		return &VisibilityError{Target: r.Repo, Source: m.ID}
	case r.Private != nil && *r.Private && !info.Private:
		return &VisibilityError{Target: r.Repo}
	}
	return r.Hub.CheckAccess(ctx, r.Repo)
}

// isSource reports whether a repo of the target's Hub is the one that the weights come from.
func (r *Repo) isSource(id string, m *model.Model) bool {
	return strings.EqualFold(id, r.owner.Source) &&
		(m.Endpoint == "" || m.Endpoint == r.Hub.Endpoint())
}

// Published lists what earlier runs have published: by the manifest of a finished conversion by
// this plan, unless the source has changed since, else by the journal of the part, or for the whole
// by those of all parts, of whatever splits: an output is the same whoever made it. While main
// holds another finished model, work goes to a branch of the plan's own, which is ours whatever is
// on it.
func (r *Repo) Published(ctx context.Context, unchanged, whole bool) ([]ledger.Output, error) {
	if m := r.main.Manifest; unchanged && m != nil && m.Plan.Digest == r.owner.Digest {
		outputs, err := r.main.claims[names.Manifest].Done(r.owner.Digest)
		return r.main.held(outputs), err
	}
	// as a model by whatever program has
	if r.main.Manifest != nil || r.main.versions[names.Config] != "" {
		name := r.workBranch(r.owner.Digest)
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
		if path.Dir(name) != names.JournalDir || !whole && name != r.work.journal {
			continue
		}
		outputs, err := c.Done(r.owner.Digest)
		if err != nil {
			return nil, fmt.Errorf("journal of %s: %w", r.Repo, err)
		}
		published = append(published, r.work.held(outputs)...)
	}
	return published, nil
}

// held returns those of the outputs that a branch has.
func (in *Inspection) held(outputs []ledger.Output) []ledger.Output {
	return slices.DeleteFunc(outputs, func(o ledger.Output) bool { return !in.holds(o) })
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
		return 0, fmt.Errorf("finish %s: no part has been published yet, as --shard and --push do",
			r.Repo)
	}
	return n, spans.Part{I: 1, N: n}.Check()
}

// partJournal matches the journals of a split conversion.
var partJournal = regexp.MustCompile(`^\.df11/part-\d+-of-(\d+)\.json$`)

// Ref names a committed output. Nothing may be committed meanwhile.
func (r *Repo) Ref(o ledger.Output) hub.FileRef {
	return hub.FileRef{Repo: r.Repo, Commit: r.work.head, Path: o.Path, Size: o.Size,
		SHA256: o.SHA256, NoCache: true}
}

// LastCommit is the newest commit of the branch of the result that the run knows: after Finish, the
// one that holds the result.
func (r *Repo) LastCommit() string { return r.main.head }

// URL is where a person finds the result.
func (r *Repo) URL() string { return r.Hub.Endpoint() + "/" + r.Repo }
