package publish

import (
	"context"
	"errors"

	"github.com/df11-convert/df11-convert/hub"
)

// workBranch names the branch on which the plan refreshes main; another target branch has its name in
// between. Not every Hub routes a name with a slash.
func (r *Repo) workBranch() string {
	if r.main.name != "main" {
		return "df11-convert-" + r.main.name + "-" + r.owner.Digest
	}
	return "df11-convert-" + r.owner.Digest
}

// RemoveBranch removes the branch of the plan, if there's one, once main is finished. It asks first,
// because some Hubs answer 500 to the removal of a branch that isn't there.
func (r *Repo) RemoveBranch(ctx context.Context) error {
	if r.fresh {
		return nil
	}
	_, err := r.Hub.Head(ctx, r.Repo, r.workBranch())
	if errors.Is(err, hub.ErrRevisionNotFound) {
		return nil
	}
	return errors.Join(err, r.Hub.DeleteBranch(ctx, r.Repo, r.workBranch()))
}

// committed records a commit of this run. A head that was found there, not answered to the request,
// may hold more: it is judged before the next one.
func (b *branch) committed(done hub.Commit) {
	b.head = done.OID
	if !done.Found {
		b.seen = done.OID
	}
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
// the branch. It returns any other error as it is.
func (r *Repo) whyGone(ctx context.Context, err error) error {
	if r.work == r.main || !errors.Is(err, hub.ErrRevisionNotFound) {
		return err
	}
	if _, _, why := r.inspect(ctx, r.main.judge, r.main.name, r.main.Inspection); why != nil {
		return why
	}
	return errors.Join(ErrBranchGone, err)
}
