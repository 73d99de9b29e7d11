package target

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/names"
)

// workBranch names the branch on which the plan of a digest refreshes main; another target branch
// has its name in between. Not every Hub routes a name with a slash.
func (r *Repo) workBranch(digest string) string {
	if r.main.name != "main" {
		return "df11-convert-" + r.main.name + "-" + digest
	}
	return "df11-convert-" + digest
}

// RemoveBranches removes the branch of the plan once main is finished. If this run has committed to
// main, it also removes the branches of other plans for main, which are out of date.
func (r *Repo) RemoveBranches(ctx context.Context) error {
	if r.fresh {
		return nil
	}
	branches, err := r.Hub.Branches(ctx, r.Repo)
	if err != nil {
		return err
	}
	for _, name := range branches {
		of := name[max(0, len(name)-len(r.owner.Digest)):]
		if !names.IsSHA256(of) || name != r.workBranch(of) || of != r.owner.Digest && !r.main.moved {
			continue
		}
		if err := r.Hub.DeleteBranch(ctx, r.Repo, name); err != nil {
			return err
		}
	}
	return nil
}

// committed records a commit of this run on a parent. A head that was found there, not answered to
// the request, may hold more: it is judged before the next one.
func (b *branch) committed(parent string, done hub.Commit) {
	b.head = done.OID
	if !done.Found {
		b.seen = done.OID
	}
	b.moved = b.moved || done.OID != parent
}

// conflictPause lets others go first: nothing after the first conflict, then a random time that
// grows to 10 s.
func (p Push) conflictPause(ctx context.Context, try int) error {
	if try == 1 {
		return nil
	}
	d := rand.N(min(100*time.Millisecond<<try, 10*time.Second))
	return p.Hub.Pause(ctx, "another machine commits to "+p.Repo, d)
}

// recheck refuses a branch that others have changed. It reads nothing if the head hasn't moved since
// this run last saw it.
func (r *Repo) recheck(ctx context.Context, b *branch, head string) error {
	if b.seen == head {
		return nil
	}
	s, err := r.snapshot(ctx, head)
	if err != nil {
		return err
	}
	in, err := b.inspect(ctx, s, b.Inspection)
	if err == nil {
		b.seen, b.Inspection = head, in
	}
	return err
}

// ErrBranchGone says that the branch of a refresh was removed, by a faster run or by a person.
var ErrBranchGone = errors.New("the branch of the refresh was removed")

// whyGone turns the error of a missing branch into ErrBranchGone: a run that finishes main removes
// the branches that are out of date then. It returns any other error as it is.
func (r *Repo) whyGone(ctx context.Context, err error) error {
	if r.work == r.main || !errors.Is(err, hub.ErrRevisionNotFound) {
		return err
	}
	if _, _, why := r.inspect(ctx, r.main.judge, r.main.name, r.main.Inspection); why != nil {
		return why
	}
	return errors.Join(ErrBranchGone, err)
}
