package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	rev      string // where batches go
	main     string // where the result goes; differs from rev while a finished repo is refreshed
	ledger   *ledger
	journal  string // path of the journal in the repo
	tree     map[string]hub.TreeEntry
	complete *ledger // what a finished repo of this very plan holds; nil if it is not one
	now      func() time.Time
	progress *Progress
	files    func() []Checkpoint

	mu      sync.Mutex
	parent  string // head of rev as we know it
	ops     []hub.Op
	outputs []Output
	since   time.Time
	allOps  map[string]hub.Op // of everything committed to rev in this run, for the final commit on main

	mark, title, about string // of the pull request
	prURL              string // "" while there is none
}

// put uploads one output and commits a batch when it is due. r is borrowed until it returns.
func (p *publisher) put(ctx context.Context, o Output, r io.ReaderAt) error {
	done := p.progress.timed(StageUpload)
	op, err := p.push.Hub.Upload(ctx, p.push.Repo, p.rev, hub.Blob{
		Path: o.Path, Size: o.Size, SHA256: o.SHA256, Reader: r, PullRequest: p.opensPR(),
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
	if err := p.commit(ctx, summary, "", ops); err != nil {
		return err
	}
	p.ops, p.outputs = nil, nil
	return nil
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
// request opens it, under the title by which a later run finds it.
func (p *publisher) commit(ctx context.Context, summary, description string, ops []hub.Op) error {
	opens := p.push.CreatePR && p.prURL == ""
	if opens {
		summary, description = p.title, p.about
	}
	for try := 1; ; try++ {
		c, err := p.push.Hub.Commit(ctx, p.push.Repo, p.rev, hub.CommitRequest{
			Summary: summary, Description: description, Parent: p.parent, Ops: ops, CreatePR: opens,
		})
		if err == nil {
			p.parent = c.OID
			p.follow(c.PullRequestURL, c.PullRequestRef)
			return nil
		}
		if !errors.Is(err, hub.ErrConflict) || try == commitTries {
			return fmt.Errorf("commit to %s: %w", p.push.Repo, err)
		}
		if err := p.conflictPause(ctx, try); err != nil {
			return err
		}
		if err := p.readHead(ctx); err != nil {
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
		p.rev, p.main = ref, ref
	}
}

// opensPR tells whether the next commit opens the pull request.
func (p *publisher) opensPR() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.push.CreatePR && p.prURL == ""
}

// finish makes the repo complete: everything small in one last commit, config.json in it, journals and stale files out.
// After a refresh that commit is the only one that main sees.
func (p *publisher) finish(ctx context.Context, summary, description string, ops []hub.Op, keep func(path string) bool) error {
	if err := p.flush(ctx); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	branch := p.rev
	if branch != p.main {
		p.rev = p.main
		if err := p.readHead(ctx); err != nil {
			return err
		}
	}
	tree, err := p.push.Hub.Tree(ctx, p.push.Repo, p.rev)
	if err != nil {
		return err
	}
	if branch != p.main {
		for _, o := range p.ledger.all() {
			if tree[o.Path].SHA256 != o.SHA256 {
				ops = append(ops, p.opFor(o))
			}
		}
	}
	for path := range tree {
		if !keep(path) {
			ops = append(ops, hub.DeleteOp(path))
		}
	}
	if err := p.commit(ctx, summary, description, ops); err != nil {
		return err
	}
	if branch != p.main {
		return p.push.Hub.DeleteBranch(ctx, p.push.Repo, branch)
	}
	return nil
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
