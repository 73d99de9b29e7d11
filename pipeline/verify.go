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

// Level is how much of a DF11 model is checked.
type Level string

// The levels, from cheap to complete. Each contains the ones before it, but for Proof, which needs no weights of the
// original and so compares hashes where Full compares bits.
const (
	LevelStructure Level = "structure" // headers, arrays, tables, positions; completeness against the plan
	LevelSample    Level = "sample"    // and the weights of some chunks of every unit
	LevelProof     Level = "proof"     // the original files are rebuilt and their sha256 compared with the published one
	LevelFull      Level = "full"      // all 16 bits of every weight against the original
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

// VerifyReport is what a check found.
type VerifyReport struct {
	Model    string   `json:"model"`
	Commit   string   `json:"commit,omitempty"`
	Against  string   `json:"against,omitempty"`
	Level    Level    `json:"level"`
	OK       bool     `json:"ok"`
	Units    int      `json:"units"`      // decoded from DF11
	BF16     int      `json:"units_bf16"` // stored unchanged
	Tensors  int      `json:"tensors"`    // copied ones
	Weights  int64    `json:"weights"`    // compared or hashed, in units
	Files    int      `json:"files_rebuilt,omitempty"`
	Seed     uint64   `json:"seed,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

// Verify checks a DF11 model. The error is a *verify.MismatchError, *verify.StructureError or *WrongError where the model
// is at fault, and anything else where the check could not run.
func Verify(ctx context.Context, opt VerifyOptions) (*VerifyReport, error) {
	if opt.Progress == nil {
		opt.Progress = new(Progress)
	}
	opt.Workers = max(1, opt.Workers)
	v := &verification{VerifyOptions: opt, tasks: newTasks(opt.Plan)}
	v.report = VerifyReport{Model: opt.DF11.Name, Commit: opt.DF11.Commit, Against: opt.Model.ID, Level: opt.Level, Seed: opt.Seed}
	err := v.run(ctx)
	if inexact := (*InexactError)(nil); errors.As(err, &inexact) {
		err = wrongf("", "stored as BF16, but in the original %v", inexact)
	}
	if err != nil {
		return nil, err
	}
	v.report.OK = true
	return &v.report, nil
}

type verification struct {
	VerifyOptions
	tasks  []*task
	report VerifyReport
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
		return v.again(ctx, v.sample)
	case LevelProof:
		return v.proof(ctx)
	case LevelFull:
		return errors.Join(v.hashes(ctx), v.again(ctx, v.full))
	}
	return fmt.Errorf("unknown level %q: structure, sample, proof or full", v.Level)
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
	v.tasks = newTasks(v.Plan)
	return compare(ctx)
}

// structure checks that the model holds what the plan says, no more and no less, and that every unit can be decoded.
func (v *verification) structure(ctx context.Context) error {
	if err := v.found(); err != nil {
		return err
	}
	known := map[string]bool{}
	for _, t := range v.tasks {
		for _, u := range t.units {
			if err := v.unitStructure(ctx, u, known); err != nil {
				return fmt.Errorf("unit %s: %w", u.Path, err)
			}
		}
		for _, p := range t.plain {
			if err := v.plainStructure(p.Tensor, known); err != nil {
				return err
			}
			v.report.Tensors++
		}
	}
	for name, s := range v.DF11.tensors {
		if !known[name] {
			return wrongf(s.file, "tensor %s belongs to nothing in the original", name)
		}
	}
	if n := exactF32(v.tasks); n > 0 {
		v.warn("%d tensors are F32 in the original and BF16 here", n)
	}
	return nil
}

func (v *verification) warn(format string, args ...any) {
	v.report.Warnings = append(v.report.Warnings, fmt.Sprintf(format, args...))
}

// exactF32 counts the tensors that are stored in another type than the original's.
func exactF32(tasks []*task) (n int) {
	for _, t := range tasks {
		t.eachTensor(func(x plan.Tensor, _ int64, _ *taskUnit) {
			if x.ExactF32 {
				n++
			}
		})
	}
	return n
}

// found checks that a loader finds the model: the official one by dfloat11_config, without which it takes nothing for
// compressed, and ComfyUI as one file.
func (v *verification) found() error {
	switch files := v.DF11.weightFiles(v.DF11.Dir); {
	case v.Plan.Layout == plan.ComfyUI && len(files) != 1:
		return wrongf("", "a model for ComfyUI is one .safetensors file, here are %d", len(files))
	case v.Plan.Layout != plan.ComfyUI && v.DF11.Dict == nil:
		return wrongf("config.json", "missing: without its dfloat11_config no loader takes this for a DF11 model")
	}
	return nil
}

func (v *verification) unitStructure(ctx context.Context, u *taskUnit, known map[string]bool) error {
	if _, coded := v.DF11.tensors[u.Path+".encoded_exponent"]; !coded {
		for _, a := range u.Attrs {
			if err := v.plainStructure(a, known); err != nil {
				return err
			}
		}
		v.report.BF16++
		return nil
	}
	for _, name := range sixTensors {
		known[u.Path+"."+name] = true
	}
	opened, err := v.DF11.openUnit(u)
	if err != nil {
		return err
	}
	unread, err := opened.CheckUnread(ctx)
	if err != nil {
		return err
	}
	for _, w := range unread {
		v.warn("%s: %v", u.Path, w)
	}
	v.report.Units++
	v.report.Weights += u.nElems()
	return nil
}

// plainStructure checks that a copied tensor is there with its dtype and shape.
func (v *verification) plainStructure(x plan.Tensor, known map[string]bool) error {
	s, ok := v.DF11.tensors[x.Name]
	switch {
	case !ok:
		return wrongf("", "tensor %s is missing", x.Name)
	case s.DType != storedDType(x) || !slices.Equal(s.Shape, x.Shape):
		return wrongf(s.file, "tensor %s is %s %v, the original is %s %v", x.Name, s.DType, s.Shape, x.DType, x.Shape)
	}
	known[x.Name] = true
	return nil
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

// sample compares some chunks of every unit.
func (v *verification) sample(ctx context.Context) error {
	for _, t := range v.tasks {
		src := v.rangeSpool(ctx, t)
		for _, u := range t.units {
			if _, coded := v.DF11.tensors[u.Path+".encoded_exponent"]; !coded {
				continue
			}
			opened, err := v.DF11.openUnit(u)
			if err != nil {
				return err
			}
			unitSrc := io.NewSectionReader(src, u.at, 2*u.nElems())
			if err := opened.CompareSample(ctx, unitSrc, u.compareOptions(v.Workers), max(1, v.Chunks), v.Seed); err != nil {
				return err
			}
		}
	}
	return nil
}

// rangeSpool reads a task's bytes at random from the original.
func (v *verification) rangeSpool(ctx context.Context, t *task) spool {
	var extents []extent
	t.eachTensor(func(x plan.Tensor, at int64, _ *taskUnit) {
		file := rangeReader{ctx, v.Source, x.File}
		if x.ExactF32 {
			f32 := narrowReader{io.NewSectionReader(file, x.Offset, x.Length), v.Model.Plan.Weights[x.File].Path, x.Source}
			extents = append(extents, extent{at: at, length: x.Length / 2, r: f32})
			return
		}
		extents = append(extents, extent{at: at, length: x.Length, r: file, off: x.Offset})
	})
	return newSpanSpool(extents)
}

// rangeReader is a weight file as an io.ReaderAt.
type rangeReader struct {
	ctx  context.Context //nolint:containedctx // see hubReaderAt
	src  Source
	file int
}

func (r rangeReader) ReadAt(p []byte, off int64) (int, error) {
	b, err := r.src.ReadRange(r.ctx, r.file, off, int64(len(p)))
	return copy(p, b), err
}

// narrowReader is an F32 tensor as the BF16 values that it holds. Offsets and lengths must be even.
type narrowReader struct {
	*io.SectionReader
	file, tensor string
}

func (r narrowReader) ReadAt(p []byte, off int64) (int, error) {
	b := make([]byte, min(2*len(p), blockBytes))
	for done := 0; done < len(p); {
		b = b[:min(2*(len(p)-done), len(b))]
		if n, err := r.SectionReader.ReadAt(b, 2*(off+int64(done))); n < len(b) {
			return done, readError(err)
		}
		half, inexact := narrowF32(nil, b, 0)
		if inexact > 0 {
			return done, &InexactError{File: r.file, Tensor: r.tensor, Values: inexact, Of: int64(len(half) / 2)}
		}
		done += copy(p[done:], half)
	}
	return len(p), nil
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
	if _, coded := v.DF11.tensors[u.Path+".encoded_exponent"]; !coded {
		at := u.at
		for _, a := range u.Attrs {
			if err := v.comparePlain(ctx, t, placed{a, at}); err != nil {
				return err
			}
			at += spoolBytes(a)
		}
		return nil
	}
	c := converter{workers: v.Workers, gpu: v.GPU, progress: v.Progress}
	_, err := c.proveBoth(ctx, u, v.DF11.arrays(u.Path), io.NewSectionReader(t.spool, u.at, 2*u.nElems()))
	return err
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
