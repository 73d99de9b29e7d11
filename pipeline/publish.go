package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/plan"
)

// A batch is committed when it has this many files or is this old (hub-protocol limits: 50–100 files a commit).
const (
	batchFiles = 50
	batchAge   = 10 * time.Minute
)

// Push says where a conversion is published.
type Push struct {
	Hub *hub.Client
	// Repo is the target, "namespace/name". Revision is its branch, "" for main; CreatePR opens a pull request instead.
	Repo     string
	Revision string
	CreatePR bool
	// Private asks for a private repo, if it has to be created; nil leaves the choice to the Hub's default.
	Private *bool
	// Public allows a public target for a private or gated source.
	Public bool
}

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
	prURL   string
}

// VisibilityError says that publishing would show a private or gated model to everybody.
type VisibilityError struct{ Source, Target string }

func (e *VisibilityError) Error() string {
	return fmt.Sprintf("%s is private or gated, but %s is public", e.Source, e.Target)
}

// openPublisher checks the target before any work: access, visibility, what it holds, and what an earlier run left.
func openPublisher(ctx context.Context, push Push, m *Model, p *plan.Plan, part string, force bool) (*publisher, error) {
	pub := &publisher{push: push, main: push.Revision, now: time.Now, journal: journalPath(part), allOps: map[string]hub.Op{}}
	if pub.main == "" {
		pub.main = "main"
	}
	if err := pub.ensureRepo(ctx, m); err != nil {
		return nil, err
	}
	if err := pub.chooseBranch(ctx, p, force); err != nil {
		return nil, err
	}
	if pub.ledger = pub.complete; pub.ledger != nil {
		return pub, nil
	}
	var err error
	pub.ledger, err = pub.readJournal(ctx, p.Digest(), part)
	return pub, err
}

// ensureRepo creates the target if need be and makes sure that we may write to it and that it is not too visible.
func (p *publisher) ensureRepo(ctx context.Context, m *Model) error {
	closed := m.Private || m.Gated != ""
	info, err := p.push.Hub.Info(ctx, p.push.Repo, "")
	switch {
	case err == nil:
		if closed && !info.Private && info.Gated == "" && !p.push.Public && !p.push.CreatePR {
			return &VisibilityError{m.ID, p.push.Repo}
		}
	case errors.Is(err, hub.ErrNotFound) && !p.push.CreatePR:
		private := p.push.Private
		if private == nil && closed && !p.push.Public {
			private = new(bool)
			*private = true
		}
		if _, err := p.push.Hub.CreateRepo(ctx, p.push.Repo, private); err != nil {
			return fmt.Errorf("create %s: %w", p.push.Repo, err)
		}
	default:
		return fmt.Errorf("target %s: %w", p.push.Repo, err)
	}
	if p.push.CreatePR {
		return nil // anyone who may read may propose
	}
	if err := p.push.Hub.CheckAccess(ctx, p.push.Repo, true); err != nil {
		return fmt.Errorf("write access to %s: %w", p.push.Repo, err)
	}
	return nil
}

// chooseBranch works on main, or on a branch of the plan's own while main holds a finished conversion.
func (p *publisher) chooseBranch(ctx context.Context, pl *plan.Plan, force bool) error {
	p.rev = p.main
	tree, err := p.push.Hub.Tree(ctx, p.push.Repo, p.main)
	if err != nil {
		return fmt.Errorf("target %s: %w", p.push.Repo, err)
	}
	finished, err := p.finished(ctx, tree)
	if err != nil {
		return err
	}
	if !finished {
		if err := refuseForeignTree(p.push.Repo, tree, pl, force); err != nil {
			return err
		}
		p.tree = tree
		return p.readHead(ctx)
	}
	if p.complete, err = p.manifestLedger(ctx, pl.Digest(), tree); err != nil || p.complete != nil {
		p.tree = tree
		return errors.Join(err, p.readHead(ctx))
	}
	p.rev = "df11-convert/" + pl.Digest()
	head, err := p.push.Hub.Head(ctx, p.push.Repo, p.main)
	if err != nil {
		return err
	}
	if err := p.push.Hub.CreateBranch(ctx, p.push.Repo, p.rev, head); err != nil {
		return fmt.Errorf("create branch %s: %w", p.rev, err)
	}
	if p.tree, err = p.push.Hub.Tree(ctx, p.push.Repo, p.rev); err != nil {
		return err
	}
	return p.readHead(ctx)
}

func (p *publisher) readHead(ctx context.Context) (err error) {
	p.parent, err = p.push.Hub.Head(ctx, p.push.Repo, p.rev)
	return err
}

// finished tells whether a tree holds a complete conversion: its config.json names dfloat11_config.
func (p *publisher) finished(ctx context.Context, tree map[string]hub.TreeEntry) (bool, error) {
	if _, ok := tree["config.json"]; !ok {
		return false, nil
	}
	head, err := p.push.Hub.Head(ctx, p.push.Repo, p.main)
	if err != nil {
		return false, err
	}
	b, err := p.push.Hub.ReadFile(ctx, p.push.Repo, head, "config.json", maxConfigBytes)
	if err != nil {
		return false, fmt.Errorf("target %s: %w", p.push.Repo, err)
	}
	return strings.Contains(string(b), `"dfloat11_config"`), nil
}

// manifestLedger is the ledger of a finished repo, if its manifest is of the same plan; else nil. What the tree does not
// confirm is left out of it, and so is made again.
func (p *publisher) manifestLedger(ctx context.Context, digest string, tree map[string]hub.TreeEntry) (*ledger, error) {
	if _, ok := tree[manifestName]; !ok {
		return nil, nil
	}
	head, err := p.push.Hub.Head(ctx, p.push.Repo, p.main)
	if err != nil {
		return nil, err
	}
	b, err := p.push.Hub.ReadFile(ctx, p.push.Repo, head, manifestName, maxJournalBytes)
	if err != nil {
		return nil, err
	}
	return ledgerOfManifest(b, digest, tree), nil
}

// ledgerOfManifest lists the outputs of a manifest that a tree confirms; nil if the manifest is broken or of another plan.
func ledgerOfManifest(manifest []byte, digest string, tree map[string]hub.TreeEntry) *ledger {
	m, err := metadata.ParseManifest(manifest)
	if err != nil || m.Plan.Digest != digest {
		return nil
	}
	l := newLedger(m.Plan.Digest, "")
	units := map[string][]UnitResult{}
	for _, u := range m.Units {
		units[u.File] = append(units[u.File], UnitResult{
			Path: u.Path, Status: string(u.Status), Reason: u.Reason, Weights: u.NWeights, TieBroken: u.TieBroken,
			Bits: u.CodedBits, Exponents: histogramOf(u.Exponents),
		})
	}
	for _, o := range m.Outputs {
		if isWeights(o.Kind) && tree[o.Path].SHA256 == o.SHA256 {
			l.add(Output{Path: o.Path, Size: o.Size, SHA256: o.SHA256, Units: units[o.Path]})
		}
	}
	for _, f := range m.Source.Files {
		l.setFile(Checkpoint{File: f.Path, Integrity: string(f.Integrity), SHA256: f.SHA256})
	}
	return l
}

// isWeights tells the outputs that a ledger lists from the small files, of which some are large enough to have a sha256
// in the tree.
func isWeights(k metadata.Kind) bool {
	return k == metadata.KindUnit || k == metadata.KindRemainder || k == metadata.KindSingle
}

// refuseForeignTree refuses a repo that holds weights which this plan does not write.
func refuseForeignTree(repo string, tree map[string]hub.TreeEntry, p *plan.Plan, force bool) error {
	if force {
		return nil
	}
	planned := plannedNames(p)
	var foreign []string
	for path := range tree {
		if strings.HasSuffix(path, ".safetensors") && !planned(path) {
			foreign = append(foreign, path)
		}
	}
	if len(foreign) > 0 {
		return &ForeignFilesError{repo, foreign}
	}
	return nil
}

// plannedNames tells which file names belong to the plan's outputs.
func plannedNames(p *plan.Plan) func(string) bool {
	names := map[string]bool{}
	for _, f := range p.OutputFiles {
		names[f.Path] = true
	}
	return func(s string) bool { return names[s] }
}

// readJournal reads a journal from the repo. What the tree does not confirm is dropped; one of another plan is empty.
func (p *publisher) readJournal(ctx context.Context, digest, part string) (*ledger, error) {
	if _, ok := p.tree[journalPath(part)]; !ok {
		return newLedger(digest, part), nil
	}
	b, err := p.push.Hub.ReadFile(ctx, p.push.Repo, p.parent, journalPath(part), maxJournalBytes)
	if err != nil {
		return nil, fmt.Errorf("journal of %s: %w", p.push.Repo, err)
	}
	l := usableLedger(b, digest, part)
	l.keep(func(o Output) bool { e, ok := p.tree[o.Path]; return ok && e.SHA256 == o.SHA256 && e.Size == o.Size })
	return l, nil
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
func conflictPause(ctx context.Context, try int) error {
	if try == 1 {
		return nil
	}
	d := rand.N(min(100*time.Millisecond<<try, 10*time.Second))
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// commit commits on top of the head, and again on the new head if somebody else was quicker.
func (p *publisher) commit(ctx context.Context, summary, description string, ops []hub.Op) error {
	for try := 1; ; try++ {
		c, err := p.push.Hub.Commit(ctx, p.push.Repo, p.rev, hub.CommitRequest{
			Summary: summary, Description: description, Parent: p.parent, Ops: ops, CreatePR: p.push.CreatePR && p.prURL == "",
		})
		if err == nil {
			p.parent = c.OID
			p.followPR(c)
			return nil
		}
		if !errors.Is(err, hub.ErrConflict) || try == commitTries {
			return fmt.Errorf("commit to %s: %w", p.push.Repo, err)
		}
		if err := conflictPause(ctx, try); err != nil {
			return err
		}
		if err := p.readHead(ctx); err != nil {
			return err
		}
	}
}

// followPR makes later commits go to the pull request that the first one opened.
func (p *publisher) followPR(c hub.Commit) {
	if c.PullRequestURL == "" {
		return
	}
	p.prURL = c.PullRequestURL
	p.rev, p.main = c.PullRequestRef, c.PullRequestRef
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

// parts reads the journals of all parts and says how many there are.
func (p *publisher) parts(ctx context.Context, digest string) ([]*ledger, int, error) {
	n, err := splitOf(p.tree)
	if err != nil {
		return nil, 0, fmt.Errorf("finish %s: %w", p.push.Repo, err)
	}
	var ls []*ledger
	for i := 1; i <= n; i++ {
		l, err := p.readJournal(ctx, digest, Part{i, n}.String())
		if err != nil {
			return nil, 0, err
		}
		ls = append(ls, l)
	}
	return ls, n, nil
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
