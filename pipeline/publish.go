package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/df11-convert/df11-convert/hub"
)

// A batch is committed when it has this many files or is this old (hub-protocol limits: 50–100 files a commit).
const (
	batchFiles = 50
	batchAge   = 10 * time.Minute
)

// publisher sends finished outputs to one Hub repo. Put may be called by several goroutines.
type publisher struct {
	push     Push
	work     string // branch that batches go to
	main     string // branch that the result goes to; another one only while a finished repo is refreshed
	ledger   *ledger
	journal  string                   // path of the journal in the repo
	tree     map[string]hub.TreeEntry // of work, before this run
	result   map[string]hub.TreeEntry // of main, before this run
	owned    map[string]bool          // weight files of main that this plan or another one of the source has made
	claims   []string                 // of the journals
	complete *ledger                  // what a finished repo of this very plan holds; nil if it is not one
	now      func() time.Time
	progress *Progress
	files    func() []Checkpoint

	mu      sync.Mutex // also of work and main, which change once a pull request is open
	parent  string     // head of work as we know it
	moved   bool       // this run has made a commit on main
	ops     []hub.Op
	outputs []Output
	since   time.Time
	allOps  map[string]hub.Op // of everything committed to work in this run, for the final commit on main

	mark, title, about string // of the pull request
	prURL              string // "" while there is none
}

// put uploads one output and commits a batch when it is due. r is borrowed until it returns.
func (p *publisher) put(ctx context.Context, o Output, r io.ReaderAt) error {
	done := p.progress.timed(StageUpload)
	branch, opens := p.next()
	op, err := p.push.Hub.Upload(ctx, p.push.Repo, branch, hub.Blob{
		Path: o.Path, Size: o.Size, SHA256: o.SHA256, Reader: r, PullRequest: opens,
	})
	if err != nil {
		return fmt.Errorf("upload %s: %w", o.Path, err)
	}
	done(o.Size)
	return p.enqueue(ctx, o, op)
}

// putUploaded commits an output whose bytes an earlier run has uploaded.
func (p *publisher) putUploaded(ctx context.Context, o Output) error {
	o.Uploaded = false
	return p.enqueue(ctx, o, hub.LFSOp(o.Path, o.SHA256, o.Size))
}

// enqueue puts an output into the batch, and commits the batch when it is due.
func (p *publisher) enqueue(ctx context.Context, o Output, op hub.Op) error {
	p.progress.Uploaded.Add(o.Size)
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.ops) == 0 {
		p.since = p.now()
	}
	p.ops = append(p.ops, op)
	p.outputs = append(p.outputs, o)
	p.allOps[o.Path] = op
	if len(p.ops) < batchFiles && p.now().Sub(p.since) < batchAge {
		return nil
	}
	return p.commitBatch(ctx)
}

// flush commits what is waiting.
func (p *publisher) flush(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.ops) == 0 {
		return nil
	}
	return p.commitBatch(ctx)
}

// commitBatch commits the waiting files together with the journal that knows them. The lock is held.
func (p *publisher) commitBatch(ctx context.Context) error {
	for _, o := range p.outputs {
		p.ledger.add(o)
	}
	for _, c := range p.files() {
		p.ledger.setFile(c)
	}
	ops := append(p.ops, hub.FileOp(p.journal, p.ledger.marshal()))
	summary := fmt.Sprintf("Add %d DF11 files (%s and on)", len(p.outputs), p.outputs[0].Path)
	if err := p.commit(ctx, change{branch: p.work, parent: p.parent, summary: summary, ops: always(ops)}); err != nil {
		return err
	}
	p.ops, p.outputs = nil, nil
	return nil
}

// change is a commit to make on a branch. ops tells what has to be done to a head of it, the parent first of all.
type change struct {
	branch, parent       string
	summary, description string
	ops                  func(ctx context.Context, head string) ([]hub.Op, error)
}

// always is what has to be done whatever the branch holds.
func always(ops []hub.Op) func(context.Context, string) ([]hub.Op, error) {
	return func(context.Context, string) ([]hub.Op, error) { return ops, nil }
}

// commitTries bounds how often a commit is rebuilt on a head that moved. Parts on other machines move it.
const commitTries = 16

// conflictPause lets others go first: nothing after the first conflict, then a random time that grows to 10 s.
func (p *publisher) conflictPause(ctx context.Context, try int) error {
	if try == 1 {
		return nil
	}
	d := rand.N(min(100*time.Millisecond<<try, 10*time.Second))
	return p.push.Hub.Pause(ctx, "another machine commits to "+p.push.Repo, d)
}

// commit commits on top of the head, and again on the new head if somebody else was quicker. The first commit of a pull
// request opens it, under the title by which a later run finds it. The lock is held.
func (p *publisher) commit(ctx context.Context, c change) error {
	opens := p.push.CreatePR && p.prURL == ""
	if opens {
		c.summary, c.description = p.title, p.about
	}
	for try := 1; ; try++ {
		ops, err := c.ops(ctx, c.parent)
		if err != nil {
			return err
		}
		done, err := p.push.Hub.Commit(ctx, p.push.Repo, c.branch, hub.CommitRequest{
			Summary: c.summary, Description: c.description, Parent: c.parent, Ops: ops, CreatePR: opens,
		})
		if err == nil {
			if c.branch == p.work {
				p.parent = done.OID
			}
			p.moved = p.moved || c.branch == p.main && done.OID != c.parent
			p.follow(done.PullRequestURL, done.PullRequestRef)
			return nil
		}
		if !errors.Is(err, hub.ErrConflict) || try == commitTries {
			return fmt.Errorf("commit to %s: %w", p.push.Repo, err)
		}
		if err := p.conflictPause(ctx, try); err != nil {
			return err
		}
		if c.parent, err = p.push.Hub.Head(ctx, p.push.Repo, c.branch); err != nil {
			return err
		}
	}
}

// namePR gives the pull request of a plan its title, which holds the mark that tells it from all others.
func (p *publisher) namePR(source, digest string) {
	mark := "df11-convert plan " + digest[:16]
	p.mark, p.title = mark, fmt.Sprintf("Add %s as DF11 (%s)", source, mark)
	p.about = "Made by df11-convert, which goes on with this pull request if it is run again with the same source and flags.\n\n" +
		"Not complete before it holds config.json with dfloat11_config. Plan " + digest + "."
}

// resumePR goes on with the pull request that an earlier run has opened for the same plan, if there is one.
func (p *publisher) resumePR(ctx context.Context) error {
	pr, err := p.push.Hub.FindPullRequest(ctx, p.push.Repo, p.main, p.mark)
	if err != nil {
		return fmt.Errorf("pull requests of %s: %w", p.push.Repo, err)
	}
	if pr != nil {
		p.follow(pr.URL, pr.Ref)
	}
	return nil
}

// follow makes later commits go to a pull request, if there is one.
func (p *publisher) follow(url, ref string) {
	if url != "" {
		p.prURL = url
		p.work, p.main = ref, ref
	}
}

// next tells which branch the next batch goes to, and whether that commit opens the pull request. Both change together,
// once the first commit of a pull request is made.
func (p *publisher) next() (branch string, opensPR bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.work, p.push.CreatePR && p.prURL == ""
}

// opensPR tells whether the next commit opens the pull request.
func (p *publisher) opensPR() bool {
	_, opens := p.next()
	return opens
}

// finish makes the repo complete: everything small in one last commit, config.json in it, journals and stale files out.
// After a refresh that commit is the only one that main sees. It is not made unless main then holds every output.
func (p *publisher) finish(ctx context.Context, summary, description string, small []hub.Op, outputs []Output, keep func(path string) bool) error {
	if err := p.flush(ctx); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	last := change{branch: p.main, parent: p.parent, summary: summary, description: description}
	if p.work != p.main {
		var err error
		if last.parent, err = p.push.Hub.Head(ctx, p.push.Repo, p.main); err != nil {
			return err
		}
	}
	last.ops = func(ctx context.Context, head string) ([]hub.Op, error) {
		return p.lastOps(ctx, head, small, outputs, keep)
	}
	return p.commit(ctx, last)
}

// lastOps is what makes a commit of main complete: the small files, every output that it does not hold, and deletions.
func (p *publisher) lastOps(ctx context.Context, head string, small []hub.Op, outputs []Output, keep func(path string) bool) ([]hub.Op, error) {
	tree, err := p.push.Hub.Tree(ctx, p.push.Repo, head)
	if err != nil {
		return nil, err
	}
	ops := slices.Clone(small)
	for _, o := range outputs {
		if p.holds(tree, o) {
			continue
		}
		if published, ok := p.ledger.output(o.Path); !ok || published.SHA256 != o.SHA256 {
			return nil, fmt.Errorf("finish %s: %s was never published", p.push.Repo, o.Path)
		}
		ops = append(ops, p.opFor(o))
	}
	for _, path := range slices.Sorted(maps.Keys(tree)) {
		if !keep(path) {
			ops = append(ops, hub.DeleteOp(path))
		}
	}
	return ops, nil
}

// holds tells whether a tree of main has an output. A file that is too small for the repo's store has no sha256 there; on
// the branch that batches go to it is the one that they brought.
func (p *publisher) holds(tree map[string]hub.TreeEntry, o Output) bool {
	e, ok := tree[o.Path]
	return ok && e.Size == o.Size && (e.SHA256 == o.SHA256 || e.SHA256 == "" && p.work == p.main)
}

// opFor puts an output that the repo's store already has into a commit on another branch.
func (p *publisher) opFor(o Output) hub.Op {
	if op, ok := p.allOps[o.Path]; ok && op.Payload() > 0 {
		return op
	}
	return hub.LFSOp(o.Path, o.SHA256, o.Size)
}

// url is where a person finds the result.
func (p *publisher) url(endpoint string) string {
	if p.prURL != "" {
		return p.prURL
	}
	return endpoint + "/" + p.push.Repo
}

// waiting tells whether an output is in a batch that is not committed.
func (p *publisher) waiting(path string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.outputs, func(o Output) bool { return o.Path == path })
}

// forget drops what the ledger of the store no longer trusts, before the outputs are made again.
func (p *publisher) forget(l *ledger) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ledger.keep(func(o Output) bool { _, ok := l.output(o.Path); return ok })
	ops, outputs := p.ops, p.outputs
	p.ops, p.outputs = nil, nil
	for i, o := range outputs {
		if _, ok := l.output(o.Path); ok {
			p.ops, p.outputs = append(p.ops, ops[i]), append(p.outputs, o)
		}
	}
}

// has tells whether an output is in the repo or uploaded and waiting for its commit.
func (p *publisher) has(path string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ok := p.ledger.output(path)
	return ok || slices.ContainsFunc(p.outputs, func(o Output) bool { return o.Path == path })
}
