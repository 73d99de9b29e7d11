package target

import (
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

	mu     sync.Mutex
	parent string // head of work as far as this run knows
	last   string // the newest commit of main that this run has made, or has found to hold what it wanted to commit
	moved  bool   // this run has made a commit on main
	seen   map[string]seen
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

// removeOwn removes, once main is finished, the branch that a plan was worked on, and, if this run has brought main
// there, those of other plans for it: main has gone past them.
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

// change is a commit to make on a branch. ops tells what has to be done to a head of it, the parent first of all.
type change struct {
	branch, parent       string
	summary, description string
	made                 map[string]string // sha256 of every output that the run knows to be there then, by path
	ops                  func(ctx context.Context, head string) ([]hub.Op, error)
}

// commitTries bounds how often a commit is rebuilt on a head that moved. Parts on other machines move it.
const commitTries = 16

// commit commits on top of the parent, and again on the new head if somebody else was quicker and the branch is still this
// conversion's. The Hub takes a commit only if the branch is where it was looked at.
func (r *Repo) commit(ctx context.Context, c change) error {
	for try := 1; ; try++ {
		if err := r.look(ctx, c.branch, c.parent, c.made); err != nil {
			return err
		}
		ops, err := c.ops(ctx, c.parent)
		if err != nil {
			return err
		}
		done, err := r.Hub.Commit(ctx, r.Repo, c.branch, hub.CommitRequest{
			Summary: c.summary, Description: c.description, Parent: c.parent, Ops: ops,
		})
		if err == nil {
			r.at.committed(c, done)
			return nil
		}
		if !errors.Is(err, hub.ErrConflict) || try == commitTries {
			return r.taken(ctx, err)
		}
		if err := r.at.conflictPause(ctx, try); err != nil {
			return err
		}
		if c.parent, err = r.Hub.Head(ctx, r.Repo, c.branch); err != nil {
			return err
		}
	}
}

// committed notes what a commit has changed. A head that was only found, not answered, may hold more than that.
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
	last := b.seen[c.branch]
	if !done.Found {
		last.head = done.OID
	}
	b.seen[c.branch] = last
}

// conflictPause lets others go first: nothing after the first conflict, then a random time that grows to 10 s.
func (b *branches) conflictPause(ctx context.Context, try int) error {
	if try == 1 {
		return nil
	}
	d := rand.N(min(100*time.Millisecond<<try, 10*time.Second))
	return b.push.Hub.Pause(ctx, "another machine commits to "+b.push.Repo, d)
}
