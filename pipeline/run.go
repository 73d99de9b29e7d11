package pipeline

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"time"

	"github.com/df11-convert/df11-convert/hub"
)

// Run converts a model. When it returns nil, every output was proved against the source, and the folder and the repo
// are complete. After an error the same call goes on where this one stopped. Work that is cancelled ends with the
// context's cause.
func Run(ctx context.Context, opt Options) (*Report, error) {
	if err := opt.check(); err != nil {
		return nil, err
	}
	r, err := newRun(ctx, opt)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	report, err := r.run(ctx)
	if report != nil {
		report.Seconds, report.Stages = time.Since(start).Seconds(), r.Progress.stages()
		report.Traffic = r.traffic()
	}
	return report, errors.Join(err, r.store.close(err == nil))
}

// run is one call of Run.
type run struct {
	Options
	store  *store
	pub    *publisher // nil without Push
	ledger *ledger    // finished in the store, or already in the target
	tasks  []*task
	files  []*fileState

	adopted      map[string]bool    // outputs that earlier runs have finished
	unpublished  []Output           // of these, what is still to be uploaded
	charged      map[string]*budget // of these, what takes disk until then, and whose share; nil where there was no room
	noDuplicates bool               // files are not copied inside the hub
	split        int                // into how many parts the work was split, for the run that finishes
	byTask       bool               // tensors are fetched by ranges, task by task
	diskLimit    int64              // for all that is on its way; 0 is none
	// spools and outputs are shares of the disk, memory is for spools in memory.
	spools, outputs, memory *budget
	mu                      sync.Mutex // journal
}

func newRun(ctx context.Context, opt Options) (*run, error) {
	r := &run{Options: opt}
	var err error
	if r.store, err = openStore(&r.Options); err != nil {
		return nil, err
	}
	if err = r.prepare(ctx); err == nil {
		err = r.store.begin(r.ledger)
	}
	if err != nil {
		r.store.close(false)
		return nil, err
	}
	r.adopted = map[string]bool{}
	for _, o := range r.ledger.all() {
		r.adopted[o.Path] = true
	}
	return r, nil
}

// prepare opens the target and finds out what is already done.
func (r *run) prepare(ctx context.Context) error {
	var err error
	if r.ledger, err = r.store.journal(ctx, &r.Options); err != nil {
		return err
	}
	r.ledger.claim(r.baseModel(), r.store.claims)
	if r.Push == nil {
		return nil
	}
	if r.pub, err = openPublisher(ctx, &r.Options); err != nil {
		return err
	}
	r.pub.progress, r.pub.files = r.Progress, r.committedCheckpoints
	return r.adopt(ctx)
}

// adopt counts as done what an earlier run, on whatever machine, has published.
func (r *run) adopt(ctx context.Context) error {
	if !r.store.keep {
		spools, err := filepath.Glob(filepath.Join(r.store.state, spoolPrefix+"*"))
		if err != nil {
			return err
		}
		r.ledger.adopt(r.pub.ledger, len(spools) > 0)
	}
	r.tasks = newTasks(r.Plan)
	if r.Finish {
		if err := r.adoptParts(ctx); err != nil {
			return err
		}
	}
	return r.validateCard(ctx)
}

// adoptParts counts as done what all parts have published, and makes sure that none is missing.
func (r *run) adoptParts(ctx context.Context) error {
	parts, n, err := r.pub.parts(ctx, r.Plan.Digest())
	if err != nil {
		return err
	}
	r.split = n
	for _, l := range parts {
		for _, o := range l.all() {
			r.ledger.add(o)
			r.pub.ledger.add(o)
		}
	}
	return r.checkParts()
}

// run converts everything and finishes.
func (r *run) run(ctx context.Context) (*Report, error) {
	r.Progress.SetPhase("convert")
	if err := r.convertAndProve(ctx); err != nil {
		return nil, r.countAllInexact(ctx, err)
	}
	if !r.Part.whole() {
		report := r.report()
		report.Repo, report.URL, report.Part = r.Push.Repo, r.pub.url(r.Push.Hub.Endpoint()), r.Part.String()
		return report, nil
	}
	r.Progress.SetPhase("finish")
	if err := r.store.removeStale(r.owner()); err != nil {
		return nil, err
	}
	report, err := r.finish(ctx)
	if errors.Is(err, hub.ErrMissingObject) && !r.noDuplicates {
		r.noDuplicates = true // a copy that the hub promised is not there: send the bytes
		report, err = r.finish(ctx)
	}
	if err == nil && r.pub != nil {
		if err := r.pub.removeBranches(ctx, r.Plan.Digest()); err != nil {
			r.Log.Warn("the target is complete, but branches of unfinished work are left there", "err", err)
		}
	}
	return report, err
}

// reset makes fresh tasks, of which those in the ledger count as done, and takes up what earlier runs have kept.
func (r *run) reset(ctx context.Context) error {
	r.tasks = r.ours(newTasks(r.Plan))
	segs := segments(r.tasks, len(r.Model.Plan.Weights))
	r.files = nil
	for i, w := range r.Model.Plan.Weights {
		r.files = append(r.files, &fileState{index: i, path: w.Path, size: w.Size, want: r.Model.SHA256[i], header: w.Header.Raw, segs: segs[i]})
	}
	found, err := r.findSpools()
	if err != nil {
		return err
	}
	r.unpublished = nil
	for _, o := range r.ledger.all() {
		if r.pub != nil && !r.pub.has(o.Path) {
			r.unpublished = append(r.unpublished, o)
		}
	}
	if err := r.budgets(segs, heldBytes(found)); err != nil {
		return err
	}
	if err := r.checkCopies(ctx); err != nil {
		return err
	}
	for _, f := range r.files {
		f.unchecked = r.byTask || !r.Part.whole() || r.Finish
	}
	r.countProgress()
	if err := r.restoreSpools(ctx, found, segs); err != nil {
		return err
	}
	r.chargeLeftovers()
	r.trimCheckpoints()
	return nil
}

func (r *run) countProgress() {
	p := r.Progress
	p.SourceBytes.Store(provable(r.tasks))
	p.OutputFiles.Store(int64(len(r.tasks)))
	for _, c := range []interface{ Store(int64) }{&p.Fetched, &p.Encoded, &p.Verified, &p.Uploaded, &p.Outputs} {
		c.Store(0)
	}
	for _, t := range r.tasks {
		if _, ok := r.ledger.output(t.path); ok {
			p.Outputs.Add(1)
			p.Encoded.Add(t.size)
			p.Verified.Add(t.size)
		}
	}
}

func (r *run) saveJournal() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.checkpoints() {
		r.ledger.setFile(c)
	}
	return r.store.saveJournal(r.ledger)
}

// checkpoints gives the state of every source file for the journal of the store.
func (r *run) checkpoints() []Checkpoint {
	var cs []Checkpoint
	for _, f := range r.files {
		cs = append(cs, r.checkpointOf(f))
	}
	return cs
}

func (r *run) checkpointOf(f *fileState) Checkpoint { return f.checkpointIn(r.ledger) }

// committedCheckpoints gives the state of every source file for the journal of the repo. It counts on nothing that only this
// machine has: neither on outputs that no commit holds yet, nor on spools.
func (r *run) committedCheckpoints() []Checkpoint {
	var cs []Checkpoint
	for _, f := range r.files {
		c := f.checkpointIn(r.pub.ledger)
		if proved := r.ledger.file(f.path); proved.Integrity == integrityProof && f.firstPending(r.pub.ledger.made, nothing) == f.size {
			c = proved
		}
		c.KeptOffset, c.KeptState = 0, nil
		cs = append(cs, c)
	}
	return cs
}
