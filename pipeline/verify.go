package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/plan"
)

// VerifyOptions say what is checked against what.
type VerifyOptions struct {
	DF11 *DF11
	// Source, Model and Plan are the original. Without them only LevelStructure is possible, or LevelProof against the
	// headers and hashes in the manifest, which then proves nothing about the original.
	Source  Source
	Model   *Model
	Plan    *plan.Plan
	Level   Level
	Workers int
	// Seed chooses the sampled chunks; Chunks is their number per unit.
	Seed   uint64
	Chunks int
	// WorkDir takes the spools of a remote original.
	WorkDir  string
	GPU      GPU
	Progress *Progress
	Log      *slog.Logger
}

// Verify checks a DF11 model. The error is a *verify.MismatchError, *verify.StructureError or *WrongError where the model
// is at fault, and anything else where the check could not run.
func Verify(ctx context.Context, opt VerifyOptions) (*VerifyReport, error) {
	if opt.Progress == nil {
		opt.Progress = new(Progress)
	}
	if opt.Level == LevelSample && opt.Chunks < 1 {
		return nil, fmt.Errorf("a sample of %d chunks", opt.Chunks)
	}
	opt.Workers = max(1, opt.Workers)
	v := &verification{VerifyOptions: opt, tasks: newTasks(opt.Plan)}
	v.report = VerifyReport{
		Model: opt.DF11.Name, Commit: opt.DF11.Commit, Against: opt.Model.ID, AgainstFile: opt.Model.Plan.WeightFile,
		Layout: opt.Plan.Layout, Level: opt.Level,
	}
	err := v.run(ctx)
	if inexact := (*InexactError)(nil); errors.As(err, &inexact) {
		err = wrongf("", "stored as BF16, but in the original %v", inexact)
	}
	if err != nil {
		return nil, err
	}
	v.report.OK, v.report.Equal = true, opt.Level.Equals()
	return &v.report, nil
}

type verification struct {
	VerifyOptions
	tasks    []*task
	gpuUnits int // that a GPU has compared
	report   VerifyReport
}

func (v *verification) run(ctx context.Context) error {
	v.Progress.SetPhase("structure")
	if err := v.structure(ctx); err != nil {
		return err
	}
	v.Progress.SetPhase(string(v.Level))
	switch v.Level {
	case LevelStructure:
		return nil
	case LevelSample:
		v.report.Chunks, v.report.Seed = v.Chunks, v.Seed
		return v.again(ctx, v.sample)
	case LevelProof:
		v.report.Weights, v.report.Published = v.unitWeights(), !slices.Contains(v.Model.SHA256, "")
		return v.proof(ctx)
	case LevelFull:
		v.report.Weights = v.unitWeights()
		err := errors.Join(v.hashes(ctx), v.again(ctx, v.full))
		if v.gpuUnits > 0 {
			v.report.GPU = &GPUReport{Units: v.gpuUnits}
			v.report.GPU.Kernel, v.report.GPU.Devices = v.GPU.Describe()
		}
		return err
	}
	_, err := ParseLevel(string(v.Level))
	return err
}

// unitWeights counts the weights of the units that are stored as DF11.
func (v *verification) unitWeights() (n int64) {
	for _, t := range v.tasks {
		for _, u := range t.units {
			if v.DF11.coded(u.Path) {
				n += u.nElems()
			}
		}
	}
	return n
}

// again compares a second time if the first difference may come from a damaged copy of the original.
func (v *verification) again(ctx context.Context, compare func(context.Context) error) error {
	err := compare(ctx)
	d, ok := v.Source.(doubter)
	if err == nil || !ok {
		return err
	}
	damaged := false
	for _, w := range v.Model.Plan.Weights {
		damaged = d.Doubt(ctx, w.Path) || damaged
	}
	if !damaged {
		return err
	}
	v.tasks, v.gpuUnits = newTasks(v.Plan), 0
	return compare(ctx)
}

// hashes checks the sha256 of every file that the manifest lists.
func (v *verification) hashes(ctx context.Context) error {
	if v.DF11.Manifest == nil {
		return nil
	}
	var local []metadata.OutputFile // no sum of theirs is published
	for _, o := range v.DF11.Manifest.Outputs {
		f, ok := v.DF11.files[o.Path]
		if !ok {
			return wrongf(o.Path, "listed in the manifest but not there")
		}
		if f.sha256 == "" {
			local = append(local, o)
		} else if err := checkSum(o, f.sha256); err != nil {
			return err
		}
	}
	open := func(i int) (io.ReaderAt, int64, error) {
		f := v.DF11.files[local[i].Path]
		return f.r, f.size, nil
	}
	sums, err := sumAll(ctx, v.Workers, len(local), open)
	if err != nil {
		return err
	}
	for i, o := range local {
		if err := checkSum(o, sums[i]); err != nil {
			return err
		}
	}
	return nil
}

func checkSum(o metadata.OutputFile, sum string) error {
	if sum != o.SHA256 {
		return wrongf(o.Path, "sha256 is %s, the manifest has %s", sum, o.SHA256)
	}
	return nil
}

// proof rebuilds every original weight file and compares its sha256 with the published one.
func (v *verification) proof(ctx context.Context) error {
	if len(v.Plan.Dropped) > 0 {
		return leftOut(v.Plan.Dropped)
	}
	r := newRebuilder(v.DF11, v.tasks, v.Workers)
	for i, w := range v.Model.Plan.Weights {
		want := v.Model.SHA256[i]
		if want == "" {
			var err error
			if want, err = v.sourceSum(ctx, i, w.Size); err != nil {
				return err
			}
		}
		if err := r.prove(ctx, w.Path, w.Header, want); err != nil {
			return err
		}
		v.Progress.Verified.Add(w.Size)
		v.report.Files++
	}
	return nil
}

// sourceSum hashes a local original.
func (v *verification) sourceSum(ctx context.Context, file int, size int64) (string, error) {
	r, err := v.Source.Stream(ctx, file, 0, size)
	if err != nil {
		return "", err
	}
	defer r.Close()
	return sumReader(ctx, r)
}

// full streams the original through the same stages as a conversion, with a comparer in the encoder's place.
func (v *verification) full(ctx context.Context) error {
	segs := segments(v.tasks, len(v.Model.Plan.Weights))
	var files []*fileState
	for i, w := range v.Model.Plan.Weights {
		files = append(files, &fileState{index: i, path: w.Path, size: w.Size, want: v.Model.SHA256[i], header: w.Header.Raw, segs: segs[i]})
	}
	v.Progress.SourceBytes.Store(provable(v.tasks))
	v.Progress.OutputFiles.Store(int64(len(v.tasks)))
	ready := make(chan *task)
	f := &fetcher{
		src: v.Source, model: v.Model, tasks: v.tasks, files: files, ledger: newLedger("", ""), ready: ready,
		begin: v.begin, arrived: func(int64) {}, parallel: 1, progress: v.Progress,
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return f.run(ctx) })
	g.Go(func() error {
		for t := range ready {
			if err := errors.Join(v.compare(ctx, t), t.spool.Release()); err != nil {
				return err
			}
			v.Progress.Outputs.Add(1)
		}
		return nil
	})
	return g.Wait()
}

func (v *verification) begin(_ context.Context, t *task) error {
	if local, ok := v.Source.(localFiles); ok && !t.narrows() {
		s, err := localSpool(local, t)
		t.spool = s
		return err
	}
	if err := os.MkdirAll(v.WorkDir, 0o777); err != nil {
		return err
	}
	s, err := newFileSpool(v.WorkDir)
	t.spool = s
	return err
}

// compare compares one task's stored bytes with the original's.
func (v *verification) compare(ctx context.Context, t *task) error {
	for _, u := range t.units {
		if err := v.compareUnit(ctx, t, u); err != nil {
			return err
		}
	}
	for _, p := range t.plain {
		if err := v.comparePlain(ctx, t, p); err != nil {
			return err
		}
	}
	return checkShadows(ctx, t)
}

func (v *verification) compareUnit(ctx context.Context, t *task, u *taskUnit) error {
	if !v.DF11.coded(u.Path) {
		at := u.at
		for _, a := range u.Attrs {
			if err := v.comparePlain(ctx, t, placed{a, at}); err != nil {
				return err
			}
			at += spoolBytes(a)
		}
		return nil
	}
	arrays, release, err := v.nearArrays(ctx, u.Path)
	if err == nil {
		c := converter{workers: v.Workers, gpu: v.GPU, progress: v.Progress}
		var gpu bool
		if gpu, err = c.proveBoth(ctx, u, arrays, io.NewSectionReader(t.spool, u.at, 2*u.nElems())); gpu {
			v.gpuUnits++
		}
	}
	return errors.Join(err, release())
}

func (v *verification) comparePlain(ctx context.Context, t *task, p placed) error {
	s, ok := v.DF11.section(p.Name)
	if !ok {
		return wrongf("", "tensor %s is missing", p.Name)
	}
	n := spoolBytes(p.Tensor)
	at, err := firstDifference(ctx, s, io.NewSectionReader(t.spool, p.at, n), n)
	if err != nil {
		return fmt.Errorf("compare tensor %s: %w", p.Name, err)
	}
	if at >= 0 {
		return wrongf(v.DF11.tensors[p.Name].file, "tensor %s differs from the original at byte %d", p.Name, at)
	}
	v.Progress.Verified.Add(n)
	return nil
}
