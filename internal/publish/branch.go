package publish

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"maps"
	"path"
	"slices"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/names"
)

// A branch is what a run knows of a branch of its repo.
type branch struct {
	name string
	head string // the newest commit that the run knows
	seen string // the commit that the run has inspected last, or has made since
	at   place
	in   *Inspection
	// the run has sent its journal, perhaps without an answer, so the last commit deletes it
	sent bool
	// added are the paths of the files that this run has committed
	added []string
}

// open reads a branch at its head, and refuses it if files of others are in the way, unless forced.
func (r *repo) open(ctx context.Context, name string, force bool) (*branch, error) {
	at := place{journal: path.Join(names.JournalDir, journalName(r.run.Part)), force: force}
	info, in, err := r.push.inspect(ctx, r.run, at, name, nil)
	if info == nil {
		return nil, err
	}
	return &branch{name: name, head: info.SHA, seen: info.SHA, at: at, in: in}, err
}

// inspect inspects the head of a branch.
func (p Push) inspect(ctx context.Context, run *Conversion, at place, name string,
	last *Inspection) (info *hub.RepoInfo, in *Inspection, err error) {
	if info, err = p.Hub.Info(ctx, p.Repo, name); err != nil {
		return nil, nil, err
	}
	l := p.listing(info.SHA, info.ByPath())
	// hfd lists only names, and KohakuHub doesn't list hashes of small files
	if slices.Contains(slices.Collect(maps.Values(l.versions)), "") {
		l, err = p.list(ctx, info.SHA)
	}
	if err == nil {
		in, err = run.inspect(ctx, at, l, last)
	}
	return info, in, err
}

// list lists all files of a commit.
func (p Push) list(ctx context.Context, id string) (listing, error) {
	files, err := p.Hub.Tree(ctx, p.Repo, id)
	return p.listing(id, files), err
}

func (p Push) listing(id string, files map[string]hub.FileInfo) listing {
	c := commit{p, id, files}
	l := listing{p.Repo, map[string]string{}, map[string]names.File{}, c}
	for name, f := range files {
		l.versions[name], _ = c.version(name)
		l.onHub[name] = fileOf(f)
	}
	return l
}

// A commit is a repo's commit, with the list of its files.
type commit struct {
	push  Push
	id    string
	files map[string]hub.FileInfo
}

// version returns the SHA-256 of a large file, and git's hash of a small one.
func (c commit) version(name string) (string, error) {
	f := c.files[name]
	return f.Hash(), nil
}

func (c commit) size(name string) int64 { return c.files[name].Size }

func (c commit) read(ctx context.Context, name string, limit int64) ([]byte, error) {
	return c.push.Hub.ReadFile(ctx, c.files[name].Ref(c.push.Repo, c.id), limit)
}

func (c commit) has(ctx context.Context, name, hash string) (bool, error) {
	if !names.IsSHA256(hash) {
		return c.files[name].Hash() == hash, nil
	}
	f, err := c.file(ctx, name)
	return f.SHA256 == hash, err
}

func (c commit) file(ctx context.Context, name string) (names.File, error) {
	f := fileOf(c.files[name])
	if f.SHA256 != "" {
		return f, nil
	}
	if f.Size <= maxSmallBytes {
		b, err := c.read(ctx, name, maxSmallBytes)
		f.SHA256 = sumOf(b)
		return f, err
	}
	r, err := c.push.Hub.Stream(ctx, c.files[name].Ref(c.push.Repo, c.id), 0, f.Size)
	if err != nil {
		return f, err
	}
	defer r.Close()
	h := sha256.New()
	_, err = io.Copy(h, r)
	f.SHA256 = hex.EncodeToString(h.Sum(nil))
	return f, err
}

// maxSmallBytes bounds what is read whole to hash it. Hubs keep larger files as those of LFS, which
// they list with their SHA-256.
const maxSmallBytes = 1 << 20

// isResult returns true. No one calls it, because a repo's history keeps what a commit removes.
func (c commit) isResult(string) bool { return true }

// workBranch names the branch on which the plan prepares an update of main. If the target is
// another branch, its name is a part of that. There's no slash, because some Hubs don't route such
// names.
func (r *repo) workBranch() string {
	if r.main.name != "main" {
		return "df11-convert-" + r.main.name + "-" + r.run.Digest
	}
	return "df11-convert-" + r.run.Digest
}

// CleanUp removes the branch of the plan, if there's one, once main is finished. It asks first,
// because KohakuHub answers 500 to the removal of a branch that isn't there.
func (r *repo) CleanUp(ctx context.Context) error {
	if r.fresh {
		return nil
	}
	_, err := r.push.Hub.Head(ctx, r.push.Repo, r.workBranch())
	if errors.Is(err, hub.ErrRevisionNotFound) {
		return nil
	}
	return errors.Join(err, r.push.Hub.DeleteBranch(ctx, r.push.Repo, r.workBranch()))
}

// committed records a commit of this run. If the Hub didn't confirm it and the run found it at the
// head, the head may hold other changes too: it's inspected before the next commit.
func (b *branch) committed(done hub.Commit, ops ...hub.Op) {
	b.head = done.OID
	for _, op := range ops {
		if !op.Deletes() {
			b.added = append(b.added, op.Path)
		}
	}
	if !done.Found {
		b.seen = done.OID
	}
}

// recheck refuses a branch that others have changed. It reads nothing if the head hasn't moved
// since this run last saw it.
func (r *repo) recheck(ctx context.Context, b *branch, head string) error {
	if b.seen == head {
		return nil
	}
	l, err := r.push.list(ctx, head)
	if err != nil {
		return err
	}
	in, err := r.run.inspect(ctx, b.at, l, b.in)
	if err == nil {
		b.seen, b.in = head, in
	}
	return err
}

// inspectMain inspects what main holds now.
func (r *repo) inspectMain(ctx context.Context) (*Inspection, error) {
	_, in, err := r.push.inspect(ctx, r.run, r.main.at, r.main.name, r.main.in)
	return in, err
}

// whyGone turns the error of a missing branch into ErrBranchGone: a run that finishes main removes
// the branch. It returns any other error as it is.
func (r *repo) whyGone(ctx context.Context, err error) error {
	if r.work == r.main || !errors.Is(err, hub.ErrRevisionNotFound) {
		return err
	}
	if _, why := r.inspectMain(ctx); why != nil {
		return why
	}
	return hint.On(errors.Join(ErrBranchGone, err), hint.Taken)
}

func fileOf(f hub.FileInfo) names.File {
	return names.File{Path: f.Path, Size: f.Size, SHA256: f.SHA256}
}
