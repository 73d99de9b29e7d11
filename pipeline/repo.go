package pipeline

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/plan"
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

// VisibilityError says that publishing would show a private or gated model to everybody.
type VisibilityError struct{ Source, Target string }

func (e *VisibilityError) Error() string {
	return fmt.Sprintf("%s is private or gated, but %s is public", e.Source, e.Target)
}

// openPublisher checks the target before any work: access, visibility, what it holds, and what an earlier run left.
func openPublisher(ctx context.Context, push Push, m *Model, p *plan.Plan, part string, force bool) (*publisher, error) {
	pub := &publisher{push: push, main: push.Revision, now: push.Hub.Now, journal: journalPath(part), allOps: map[string]hub.Op{}}
	if pub.main == "" {
		pub.main = "main"
	}
	if err := pub.ensureRepo(ctx, m); err != nil {
		return nil, err
	}
	if push.CreatePR {
		pub.namePR(m.ID, p.Digest())
		if err := pub.resumePR(ctx); err != nil {
			return nil, err
		}
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
		if closed && !info.Private && info.Gated == "" && !p.push.Public {
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
	p.work = p.main
	tree, err := p.push.Hub.Tree(ctx, p.push.Repo, p.main)
	if err != nil {
		return fmt.Errorf("target %s: %w", p.push.Repo, err)
	}
	p.result = tree
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
	if p.push.CreatePR { // the pull request is the branch, and whoever proposes may not be able to make one
		p.tree = tree
		return p.readHead(ctx)
	}
	p.work = "df11-convert/" + pl.Digest()
	head, err := p.push.Hub.Head(ctx, p.push.Repo, p.main)
	if err != nil {
		return err
	}
	if err := p.push.Hub.CreateBranch(ctx, p.push.Repo, p.work, head); err != nil {
		return fmt.Errorf("create branch %s: %w", p.work, err)
	}
	if p.tree, err = p.push.Hub.Tree(ctx, p.push.Repo, p.work); err != nil {
		return err
	}
	return p.readHead(ctx)
}

func (p *publisher) readHead(ctx context.Context) (err error) {
	p.parent, err = p.push.Hub.Head(ctx, p.push.Repo, p.work)
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
