package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/atomicfile"
	"github.com/df11-convert/df11-convert/internal/plan"
)

// Integrity states of a source file, as the manifest has them (docs/manifest.md).
const (
	integrityStreamed  = "streamed"
	integrityProof     = "proof"
	integrityUnchecked = "unchecked"
)

// Limits on small files that are read whole.
const (
	maxConfigBytes  = 8 << 20
	maxJournalBytes = 256 << 20
)

// Options say what to convert, where to, and within which budgets. The zero value of each budget means a default.
type Options struct {
	Source Source
	Model  *Model
	Plan   *plan.Plan

	// OutDir keeps the result; "" keeps nothing, which needs Push. Push publishes it.
	OutDir string
	Push   *Push
	// WorkDir holds what is on its way, if there is no OutDir.
	WorkDir string

	// Workers is the parallelism of encoding and verification, Uploads the number of files sent at once.
	Workers, Uploads int
	// Disk bounds, in bytes, the spools and the finished files that wait for their upload; 0 is no bound.
	Disk int64

	// Part makes only a share of the outputs, for one of many machines, and leaves the repo unfinished. Finish completes
	// what the parts have published. Both need Push and no OutDir.
	Part   Part
	Finish bool

	// Force allows other weights in the target. Strict makes a unit that DF11 cannot hold an error.
	Force, Strict bool
	// BaseModel names the Hub repo that a local source came from, for the model card.
	BaseModel string
	// Version is written into manifest and card.
	Version string

	GPU      GPU // nil: none
	Progress *Progress
	Log      *slog.Logger
}

func (o *Options) check() error {
	switch {
	case o.Source == nil || o.Model == nil || o.Plan == nil:
		return errors.New("options: source, model and plan are needed")
	case o.OutDir == "" && o.Push == nil:
		return errors.New("options: neither an output folder nor a target repo")
	case o.OutDir == "" && o.WorkDir == "":
		return errors.New("options: publishing without an output folder needs a work folder")
	case (!o.Part.whole() || o.Finish) && (o.Push == nil || o.OutDir != "" || o.Push.CreatePR):
		return errors.New("options: parts are published to a repo: they need a target, no output folder and no pull request")
	case !o.Part.whole() && o.Finish:
		return errors.New("options: a run is either a part or the one that finishes")
	case !o.Part.whole() && o.Plan.Layout.Single():
		return errors.New("options: a single-file layout can't be split into parts")
	case (!o.Part.whole() || o.Finish) && len(o.Plan.Dropped) > 0:
		return errors.New("options: the source holds tensors outside the model, so its files can't be proved from parts; convert it in one run")
	}
	if err := o.Part.check(); err != nil {
		return err
	}
	o.Workers, o.Uploads = max(1, o.Workers), max(1, o.Uploads)
	if o.Progress == nil {
		o.Progress = new(Progress)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return nil
}

// journalName is the name of this run's journal.
func (o *Options) journalName() string {
	if o.Finish {
		return finishPart
	}
	return o.Part.String()
}

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

// Traffic is what one side's Hub was asked for in this run.
type Traffic struct {
	Requests int64         `json:"requests"`
	Retries  int64         `json:"retries"`
	Waited   time.Duration `json:"waited_ns"` // because a Hub asked for it, or after errors
	BytesIn  int64         `json:"bytes_in"`
	BytesOut int64         `json:"bytes_out"`
}

// traffic reads the clients' counters.
func (r *run) traffic() map[string]Traffic {
	m := map[string]Traffic{}
	if s, ok := r.Source.(*hubSource); ok {
		m["source"] = trafficOf(s.client)
	}
	if r.Push != nil {
		m["target"] = trafficOf(r.Push.Hub)
	}
	return m
}

func trafficOf(c *hub.Client) Traffic {
	s := c.Stats()
	return Traffic{Requests: s.Requests, Retries: s.Retries, Waited: s.Waited, BytesIn: s.BytesIn, BytesOut: s.BytesOut}
}

// run is one call of Run.
type run struct {
	Options
	store  *store
	pub    *publisher // nil without Push
	ledger *ledger    // finished in the store, or already in the target
	tasks  []*task
	files  []*fileState

	unpublished     []Output // finished by an earlier run, still to be uploaded
	noDuplicates    bool     // files are not copied inside the hub
	split           int      // into how many parts the work was split, for the run that finishes
	byTask          bool     // tensors are fetched by ranges, task by task
	spools, outputs *budget
	mu              sync.Mutex // journal
}

func newRun(ctx context.Context, opt Options) (*run, error) {
	r := &run{Options: opt}
	dir := opt.OutDir
	if dir == "" {
		dir = opt.WorkDir
	}
	var err error
	if r.store, err = openStore(dir, opt.OutDir != "", opt.Force, plannedNames(opt.Plan)); err != nil {
		return nil, err
	}
	if err := r.prepare(ctx); err != nil {
		r.store.close(false)
		return nil, err
	}
	return r, nil
}

// prepare opens the target and finds out what is already done.
func (r *run) prepare(ctx context.Context) error {
	var err error
	if r.ledger, err = r.store.journal(ctx, r.Plan.Digest(), r.journalName()); err != nil {
		return err
	}
	if r.Push == nil {
		return nil
	}
	if r.pub, err = openPublisher(ctx, *r.Push, r.Model, r.Plan, r.journalName(), r.Force); err != nil {
		return err
	}
	r.pub.progress, r.pub.files = r.Progress, r.checkpoints
	return r.adopt(ctx)
}

// adopt counts as done what an earlier run, on whatever machine, has published.
func (r *run) adopt(ctx context.Context) error {
	if !r.store.keep {
		for _, o := range r.pub.ledger.all() {
			r.ledger.add(o)
		}
		for _, c := range r.pub.ledger.allFiles() {
			if c.Offset > r.ledger.file(c.File).Offset || c.Integrity != "" {
				r.ledger.setFile(c)
			}
		}
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

// run converts everything, once more if a source file turned out to be broken on its way, and finishes.
func (r *run) run(ctx context.Context) (*Report, error) {
	r.Progress.SetPhase("convert")
	err := r.convertAll(ctx)
	if file := brokenFile(err); file != "" && ctx.Err() == nil {
		r.Log.Warn("source file was not what was published, reading it again", "file", file, "err", err)
		r.distrust(file)
		err = r.convertAll(ctx)
	}
	if errors.Is(err, hub.ErrMissingObject) && ctx.Err() == nil {
		r.Log.Warn("the target lost files that were uploaded, making them again", "err", err)
		r.distrustUploads()
		err = r.convertAll(ctx)
	}
	if err != nil {
		return nil, err
	}
	if !r.Part.whole() {
		report := r.report()
		report.Repo, report.URL, report.Part = r.Push.Repo, r.pub.url(r.Push.Hub.Endpoint()), r.Part.String()
		return report, nil
	}
	r.Progress.SetPhase("proof")
	if err := r.proveUnchecked(ctx); err != nil {
		return nil, err
	}
	r.Progress.SetPhase("finish")
	report, err := r.finish(ctx)
	if errors.Is(err, hub.ErrMissingObject) && !r.noDuplicates {
		r.noDuplicates = true // a copy that the hub promised is not there: send the bytes
		report, err = r.finish(ctx)
	}
	return report, err
}

// brokenFile names the source file whose bytes an error found to be wrong; "" for any other error.
func brokenFile(err error) string {
	if e := (*SourceError)(nil); errors.As(err, &e) {
		return e.File
	}
	if e := (*HeaderError)(nil); errors.As(err, &e) {
		return e.File
	}
	return ""
}

// distrustUploads forgets outputs that only the target's store is said to have.
func (r *run) distrustUploads() {
	r.ledger.keep(func(o Output) bool {
		_, committed := r.pub.ledger.output(o.Path)
		return committed && !r.pub.waiting(o.Path) || !o.Uploaded
	})
	r.pub.forget(r.ledger)
}

func (r *run) distrust(file string) {
	r.ledger.distrust(file)
	if r.pub != nil {
		r.pub.ledger.distrust(file)
		r.pub.forget(r.ledger)
	}
}

// convertAll runs the stages until every task is done.
func (r *run) convertAll(ctx context.Context) error {
	if err := r.reset(); err != nil {
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	ready, made, sealed := make(chan *task), make(chan *built), make(chan Output)
	g.Go(func() error { return r.fetcher(ready).run(gctx) })
	g.Go(func() error { return r.convertLoop(gctx, ready, made) })
	seal := func() error { return r.sealLoop(gctx, made, sealed) }
	r.pool(g, func() { close(sealed) }, seal, seal, func() error { return r.resend(gctx, sealed) })
	for range r.Uploads {
		g.Go(func() error { return r.publishLoop(gctx, sealed) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if err := r.checkStrict(); err != nil {
		return err
	}
	if r.pub != nil {
		return r.pub.flush(ctx)
	}
	return nil
}

// pool runs the workers in the group and calls done after the last one has ended.
func (r *run) pool(g *errgroup.Group, done func(), workers ...func() error) {
	var wg sync.WaitGroup
	for _, work := range workers {
		wg.Add(1)
		g.Go(func() error {
			defer wg.Done()
			return work()
		})
	}
	g.Go(func() error {
		wg.Wait()
		done()
		return nil
	})
}

// resend hands on outputs that an earlier run finished here but did not publish.
func (r *run) resend(ctx context.Context, sealed chan<- Output) error {
	if r.pub == nil {
		return nil
	}
	for _, o := range r.unpublished {
		select {
		case sealed <- o:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// reset makes fresh tasks, of which those in the ledger count as done.
func (r *run) reset() error {
	r.tasks = r.ours(newTasks(r.Plan))
	segs := segments(r.tasks, len(r.Model.Plan.Weights))
	r.files = nil
	for i, w := range r.Model.Plan.Weights {
		r.files = append(r.files, &fileState{index: i, path: w.Path, size: w.Size, want: r.Model.SHA256[i], header: w.Header.Raw, segs: segs[i]})
	}
	var err error
	if r.byTask, err = r.budgets(segs); err != nil {
		return err
	}
	for _, f := range r.files {
		f.unchecked = r.byTask || !r.Part.whole() || r.Finish
	}
	r.unpublished = nil
	for _, o := range r.ledger.all() {
		if r.pub == nil {
			break
		}
		if !r.pub.has(o.Path) {
			r.unpublished = append(r.unpublished, o)
		}
	}
	r.countProgress()
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

func (r *run) fetcher(ready chan<- *task) *fetcher {
	f := &fetcher{
		src: r.Source, model: r.Model, tasks: r.tasks, files: r.files, ledger: r.ledger, ready: ready,
		begin: r.begin, byTask: r.byTask, parallel: 1, progress: r.Progress,
	}
	if _, local := r.Source.(localFiles); local {
		f.parallel = r.Workers
	}
	return f
}

// begin gives a task its spool and its counters. It blocks while the disk budget is used up.
func (r *run) begin(ctx context.Context, t *task) error {
	if err := newCounters(t); err != nil {
		return err
	}
	if local, ok := r.Source.(localFiles); ok && !t.narrows() {
		s, err := localSpool(local, t)
		t.spool = s
		return err
	}
	if err := r.spools.acquire(ctx, t.size); err != nil {
		return fmt.Errorf("spool for %s: %w", t.path, err)
	}
	s, err := r.newSpool(t)
	if err != nil {
		return err
	}
	t.spool = budgeted{s, func() { r.spools.release(t.size) }}
	return nil
}

// newSpool makes room for a remote task's bytes.
func (r *run) newSpool(t *task) (spool, error) {
	if t.size <= memSpoolBytes {
		return &memSpool{make([]byte, t.size)}, nil
	}
	return newFileSpool(r.store.state)
}

// budgeted gives its budget back with the spool.
type budgeted struct {
	spool
	free func()
}

func (b budgeted) Release() error {
	err := b.spool.Release()
	b.free()
	return err
}

// localSpool reads a task's bytes where they are.
func localSpool(local localFiles, t *task) (spool, error) {
	var extents []extent
	var failed error
	t.eachTensor(func(x plan.Tensor, at int64, _ *taskUnit) {
		f, err := local.File(x.File)
		if err != nil {
			failed = err
		}
		extents = append(extents, extent{at: at, length: x.Length, r: f, off: x.Offset})
	})
	return newSpanSpool(extents), failed
}

// convertLoop converts task after task; it alone closes made.
func (r *run) convertLoop(ctx context.Context, ready <-chan *task, made chan<- *built) error {
	defer close(made)
	c := &converter{create: r.create, workers: r.Workers, progress: r.Progress, gpu: r.GPU, strict: true}
	for t := range ready {
		b, err := c.convert(ctx, t)
		if err = errors.Join(err, t.spool.Release()); err != nil {
			if b != nil {
				b.file.Cleanup()
			}
			return fmt.Errorf("convert %s: %w", t.path, err)
		}
		select {
		case made <- b:
		case <-ctx.Done():
			b.file.Cleanup()
			return context.Cause(ctx)
		}
	}
	return nil
}

// create makes an output file; one that does not stay counts against the disk budget until it is uploaded.
func (r *run) create(ctx context.Context, t *task, size int64) (*atomicfile.File, error) {
	if !r.store.keep {
		if err := r.outputs.acquire(ctx, size); err != nil {
			return nil, err
		}
	}
	return r.store.create(t.path, size)
}

// sealLoop gives verified files their sha256 and their name, and writes them into the journal.
func (r *run) sealLoop(ctx context.Context, made <-chan *built, sealed chan<- Output) error {
	for b := range made {
		o, err := r.seal(ctx, b)
		if err != nil {
			return fmt.Errorf("output %s: %w", b.task.path, err)
		}
		select {
		case sealed <- o:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func (r *run) seal(ctx context.Context, b *built) (Output, error) {
	defer b.file.Cleanup()
	done := r.Progress.timed(StageHash)
	sum, err := sumReader(ctx, io.NewSectionReader(b.file, 0, b.size))
	done(b.size)
	if err != nil {
		return Output{}, err
	}
	if err := b.file.Commit(b.size); err != nil {
		return Output{}, err
	}
	o := Output{Path: b.task.path, Size: b.size, SHA256: sum, Units: b.result, Prefixes: b.task.prefixes}
	r.ledger.add(o)
	r.Progress.Outputs.Add(1)
	r.Progress.OutputBytes.Add(o.Size)
	r.Log.Info("output finished", "file", o.Path, "bytes", o.Size)
	return o, r.saveJournal()
}

func (r *run) saveJournal() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.checkpoints() {
		r.ledger.setFile(c)
	}
	return r.store.saveJournal(r.ledger)
}

// checkpoints gives the state of every source file for a journal.
func (r *run) checkpoints() []Checkpoint {
	var cs []Checkpoint
	for _, f := range r.files {
		cs = append(cs, r.checkpointOf(f))
	}
	return cs
}

func (r *run) checkpointOf(f *fileState) Checkpoint {
	if c := r.ledger.file(f.path); c.Integrity == integrityProof {
		return c
	}
	return f.checkpoint(func(t *task) bool { _, ok := r.ledger.output(t.path); return ok })
}

// publishLoop uploads sealed files and lets those go that need not stay.
func (r *run) publishLoop(ctx context.Context, sealed <-chan Output) error {
	for o := range sealed {
		if r.pub == nil {
			continue
		}
		if err := r.upload(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) upload(ctx context.Context, o Output) error {
	if o.Uploaded {
		return r.pub.putUploaded(ctx, o)
	}
	f, err := os.Open(r.store.path(o.Path))
	if err != nil {
		return err
	}
	defer f.Close()
	if err := r.pub.put(ctx, o, f); err != nil {
		return err
	}
	if r.store.keep {
		return nil
	}
	if !slices.ContainsFunc(r.unpublished, func(u Output) bool { return u.Path == o.Path }) {
		r.outputs.release(o.Size) // what an earlier run left was never acquired
	}
	uploaded := o
	uploaded.Uploaded = true
	r.ledger.add(uploaded)
	return errors.Join(os.Remove(f.Name()), r.saveJournal())
}

// StrictError lists units that DF11 cannot hold, under --strict or where nothing else is left.
type StrictError struct {
	Units []UnitResult
	All   bool
}

func (e *StrictError) Error() string {
	var names []string
	for _, u := range e.Units {
		names = append(names, u.Path+" ("+u.Reason+")")
	}
	if e.All {
		return "no unit can be held by DF11: " + summary(names)
	}
	return "units that DF11 cannot hold: " + summary(names)
}

// checkStrict refuses results that are not what was asked for.
func (r *run) checkStrict() error {
	e := &StrictError{All: true}
	for _, o := range r.ledger.all() {
		for _, u := range o.Units {
			if u.Status == statusBF16 {
				e.Units = append(e.Units, u)
			} else {
				e.All = false
			}
		}
	}
	if len(e.Units) > 0 && (r.Strict || e.All) {
		return e
	}
	return nil
}
