package target

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/df11-convert/df11-convert/hub"
)

// branches are where the commits of a run go. Several goroutines may ask where; one at a time commits.
type branches struct {
	push Push
	main string // branch that the result goes to
	work string // branch that batches go to: main, or a branch of the plan's own while a finished repo is refreshed

	mu        sync.Mutex
	parent    string // head of work as far as this run knows
	last      string // the newest commit of main that this run has made, or has found to hold what it wanted to commit
	moved     bool   // this run has made a commit on main
	inspected map[string]inspected
}

// inspected is the head of a branch that the run has inspected, or has committed itself.
type inspected struct {
	head string
	*inspection
}

// knows gives what is known of a branch.
func (b *branches) knows(branch string) inspected {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.inspected[branch]
}

// note records the inspection of a branch at its head.
func (b *branches) note(branch, head string, in *inspection) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.inspected[branch] = inspected{head, in}
}

// ownPrefix begins the names of the branches on which plans refresh main; the digest of the plan follows. Another target
// branch than main has its name in between.
func (b *branches) ownPrefix() string {
	if b.main == "main" {
		return "df11-convert/"
	}
	return "df11-convert/" + b.main + "/"
}

// isDigest matches the digest of a plan.
var isDigest = regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString

// removeOwn removes the branch of a plan once main is finished. If this run has committed to main, it also removes the branches of
// other plans for main, which are out of date.
func (b *branches) removeOwn(ctx context.Context, digest string) error {
	names, err := b.push.Hub.Branches(ctx, b.push.Repo)
	if err != nil {
		return err
	}
	for _, name := range names {
		of, ours := strings.CutPrefix(name, b.ownPrefix())
		if !ours || !isDigest(of) || of != digest && !b.moved {
			continue
		}
		if err := b.push.Hub.DeleteBranch(ctx, b.push.Repo, name); err != nil {
			return err
		}
	}
	return nil
}

// committed records a commit of this run. A head that was found there, not answered to the request, may hold more: it is
// rechecked.
func (b *branches) committed(c change, done hub.Commit) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c.branch == b.work {
		b.parent = done.OID
	}
	if c.branch == b.main {
		b.last = done.OID
		b.moved = b.moved || done.OID != c.parent
	}
	if !done.Found {
		known := b.inspected[c.branch]
		known.head = done.OID
		b.inspected[c.branch] = known
	}
}

// conflictPause lets others go first: nothing after the first conflict, then a random time that grows to 10 s.
func (b *branches) conflictPause(ctx context.Context, try int) error {
	if try == 1 {
		return nil
	}
	d := rand.N(min(100*time.Millisecond<<try, 10*time.Second))
	return b.push.Hub.Pause(ctx, "another machine commits to "+b.push.Repo, d)
}

// recheck refuses a branch that others have changed. It reads nothing if the head is the one that this run saw last. outputs are
// the sha256 of the outputs that this run has put there, or will, by path.
func (r *Repo) recheck(ctx context.Context, branch, head string, outputs map[string]string) error {
	last := r.branches.knows(branch)
	if last.head == head {
		return nil
	}
	t, err := r.readTree(ctx, head)
	if err != nil {
		return err
	}
	in, err := r.owner.recheck(ctx, t.snapshot(), last.inspection, outputs)
	if err == nil {
		r.branches.note(branch, head, in)
	}
	return err
}

// whyGone tells why the branch of a refresh is gone: perhaps another run was quicker, since whoever has finished main removes the
// branches that main has gone past. Any other error stays as it is.
func (r *Repo) whyGone(ctx context.Context, err error) error {
	if r.branches.work == r.branches.main || !errors.Is(err, hub.ErrRevisionNotFound) {
		return err
	}
	head, headErr := r.Hub.Head(ctx, r.Repo, r.branches.main)
	if headErr != nil {
		return err
	}
	return cmp.Or(r.recheck(ctx, r.branches.main, head, nil), err)
}
