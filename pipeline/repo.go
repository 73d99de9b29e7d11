package pipeline

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/metadata"
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
func openPublisher(ctx context.Context, o *Options) (*publisher, error) {
	push, part, digest := *o.Push, o.journalName(), o.Plan.Digest()
	pub := &publisher{push: push, main: push.Revision, now: push.Hub.Now, journal: journalPath(part), allOps: map[string]hub.Op{}}
	if pub.main == "" {
		pub.main = "main"
	}
	if err := pub.ensureRepo(ctx, o); err != nil {
		return nil, err
	}
	if push.CreatePR {
		pub.namePR(o.Model.ID, digest)
		if err := pub.resumePR(ctx); err != nil {
			return nil, err
		}
	}
	if err := pub.chooseBranch(ctx, o); err != nil {
		return nil, err
	}
	var err error
	if pub.ledger = pub.complete; pub.ledger == nil {
		if pub.ledger, err = pub.readJournal(ctx, digest, part); err != nil {
			return nil, err
		}
	}
	pub.ledger.claim(o.baseModel(), pub.claims)
	return pub, nil
}

// ensureRepo creates the target if need be and makes sure that we may write to it, that it is not too visible, and that it
// is not the source.
func (p *publisher) ensureRepo(ctx context.Context, o *Options) error {
	m := o.Model
	closed := m.Private || m.Gated != ""
	info, err := p.push.Hub.Info(ctx, p.push.Repo, "")
	switch {
	case err == nil && o.isSourceRepo(info.ID):
		return &SourceTargetError{info.ID}
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
func (p *publisher) chooseBranch(ctx context.Context, o *Options) error {
	p.work = p.main
	if err := p.readHead(ctx); err != nil {
		return fmt.Errorf("target %s: %w", p.push.Repo, err)
	}
	tree, err := p.push.Hub.Tree(ctx, p.push.Repo, p.parent)
	if err != nil {
		return fmt.Errorf("target %s: %w", p.push.Repo, err)
	}
	p.tree, p.result = tree, tree
	manifest, err := p.readManifest(ctx)
	if err != nil {
		return err
	}
	if err := p.own(ctx, o.owner(), manifest, o.Force); err != nil {
		return err
	}
	if p.complete, err = o.stillOf(ctx, ledgerOfManifest(manifest, o.Plan.Digest(), "")); err != nil {
		return err
	}
	if p.complete != nil {
		p.complete.keep(p.confirms)
		return nil
	}
	finished := manifest != nil
	if !finished {
		finished, err = p.hasConfig(ctx)
	}
	if err != nil || !finished || p.push.CreatePR { // the pull request is the branch, and whoever proposes may not be able to make one
		return err
	}
	return p.branchOff(ctx, o.Plan.Digest())
}

// branchPrefix begins the names of the branches on which plans refresh main; the digest of the plan follows. Another target
// branch than main has its name in between.
func (p *publisher) branchPrefix() string {
	if p.main == "main" {
		return "df11-convert/"
	}
	return "df11-convert/" + p.main + "/"
}

// isDigest matches the digest of a plan.
var isDigest = regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString

// removeBranches removes, once main is finished, the branch that its plan was worked on, and, if this run has brought main
// there, those of other plans for it: main has gone past them.
func (p *publisher) removeBranches(ctx context.Context, digest string) error {
	if p.push.CreatePR {
		return nil
	}
	refs, err := p.push.Hub.Refs(ctx, p.push.Repo)
	if err != nil {
		return err
	}
	for _, b := range refs.Branches {
		of, ours := strings.CutPrefix(b.Name, p.branchPrefix())
		if !ours || !isDigest(of) || of != digest && !p.moved {
			continue
		}
		if err := p.push.Hub.DeleteBranch(ctx, p.push.Repo, b.Name); err != nil {
			return err
		}
	}
	return nil
}

// branchOff makes the branch of a plan, or goes on with it.
func (p *publisher) branchOff(ctx context.Context, digest string) (err error) {
	p.work = p.branchPrefix() + digest
	if err := p.push.Hub.CreateBranch(ctx, p.push.Repo, p.work, p.parent); err != nil {
		return fmt.Errorf("create branch %s: %w", p.work, err)
	}
	if p.tree, err = p.push.Hub.Tree(ctx, p.push.Repo, p.work); err != nil {
		return err
	}
	return p.readHead(ctx)
}

// own finds out which weight files of main are ours, and refuses a repo with others. Every commit has the journal with it
// that claims its files, so journals are only read as long as there is a file that none has claimed.
func (p *publisher) own(ctx context.Context, w owner, manifest *metadata.Manifest, force bool) error {
	var found, journals []string
	for _, path := range slices.Sorted(maps.Keys(p.tree)) {
		switch {
		case isWeightFile(path):
			found = append(found, path)
		case isJournal(path):
			journals = append(journals, path)
		}
	}
	p.owned = map[string]bool{}
	own := func(names []string) {
		for _, name := range names {
			p.owned[name] = true
		}
	}
	own(w.ofManifest(manifest))
	for _, j := range journals {
		if !slices.ContainsFunc(found, func(name string) bool { return !p.owned[name] }) {
			break
		}
		b, err := p.push.Hub.ReadFile(ctx, p.push.Repo, p.parent, j, maxJournalBytes)
		if err != nil {
			return fmt.Errorf("journal of %s: %w", p.push.Repo, err)
		}
		own(w.ofJournal(b))
	}
	var err error
	p.claims, err = w.take(p.push.Repo, found, p.owned, manifest, force)
	return err
}

func (p *publisher) readHead(ctx context.Context) (err error) {
	p.parent, err = p.push.Hub.Head(ctx, p.push.Repo, p.work)
	return err
}

// hasConfig tells whether main has a config.json of DF11, as a finished conversion by whatever program has.
func (p *publisher) hasConfig(ctx context.Context) (bool, error) {
	if _, ok := p.tree["config.json"]; !ok {
		return false, nil
	}
	b, err := p.push.Hub.ReadFile(ctx, p.push.Repo, p.parent, "config.json", maxConfigBytes)
	if err != nil {
		return false, fmt.Errorf("target %s: %w", p.push.Repo, err)
	}
	return strings.Contains(string(b), `"dfloat11_config"`), nil
}

// readManifest reads the manifest of main, which only a finished conversion has; nil if there is none, or it is broken.
func (p *publisher) readManifest(ctx context.Context) (*metadata.Manifest, error) {
	if _, ok := p.tree[manifestName]; !ok {
		return nil, nil
	}
	b, err := p.push.Hub.ReadFile(ctx, p.push.Repo, p.parent, manifestName, maxJournalBytes)
	if err != nil {
		return nil, fmt.Errorf("target %s: %w", p.push.Repo, err)
	}
	m, err := metadata.ParseManifest(b)
	if err != nil {
		return nil, nil //nolint:nilerr // it tells nothing of anybody
	}
	return m, nil
}

// ledgerOfManifest lists the outputs of a manifest, of which what is not there any more has to be dropped. nil: there is
// no manifest, or it is of another plan.
func ledgerOfManifest(m *metadata.Manifest, digest, part string) *ledger {
	if m == nil || m.Plan.Digest != digest {
		return nil
	}
	l := newLedger(digest, part)
	for _, v := range m.Verification {
		if v.Method == gpuMethod {
			l.gpu = &v
		}
	}
	units := map[string][]UnitResult{}
	for _, u := range m.Units {
		units[u.File] = append(units[u.File], UnitResult{
			Path: u.Path, Status: string(u.Status), Reason: u.Reason, Weights: u.NWeights, TieBroken: u.TieBroken,
			Bits: u.CodedBits, Exponents: histogramOf(u.Exponents), GPU: l.gpu != nil && l.gpu.NUnits == nDF11(m),
		})
	}
	for _, o := range m.Outputs {
		if isWeights(o.Kind) {
			l.add(Output{Path: o.Path, Size: o.Size, SHA256: o.SHA256, Units: units[o.Path]})
		}
	}
	for _, f := range m.Source.Files {
		l.setFile(Checkpoint{File: f.Path, Integrity: string(f.Integrity), SHA256: f.SHA256})
	}
	return l
}

// nDF11 counts the units that a decoder could decode.
func nDF11(m *metadata.Manifest) (n int64) {
	for _, u := range m.Units {
		if u.Status == metadata.DF11 {
			n++
		}
	}
	return n
}

// isWeights tells the outputs that a ledger lists from the small files, of which some are large enough to have a sha256
// in the tree.
func isWeights(k metadata.Kind) bool {
	return k == metadata.KindUnit || k == metadata.KindRemainder || k == metadata.KindSingle
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
	l.keep(p.confirms)
	return l, nil
}

// confirms tells whether the tree holds an output, as far as the Hub knows.
func (p *publisher) confirms(o Output) bool {
	e, ok := p.tree[o.Path]
	return ok && e.SHA256 == o.SHA256 && e.Size == o.Size
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
