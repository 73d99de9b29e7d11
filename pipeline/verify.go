package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/df11-convert/df11-convert/internal/back"
	"github.com/df11-convert/df11-convert/internal/forward"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/verify"
)

// Verify verifies a DF11 model, up to its first fault. If the model is at fault there are a report
// and a *verify.MismatchError, *forward.TensorError, *back.RebuildError, *verify.StructureError or
// *model.InvalidError. If the verification could not run there is another error, and no report.
func Verify(ctx context.Context, opt PairOptions) (*VerifyReport, error) {
	opt.settle()
	v := &verification{
		PairOptions: opt, outputs: spans.Outputs(opt.Plan),
		check: back.Checker{Pair: opt.Pair, Workers: opt.Workers},
	}
	v.check.Beside = []back.OtherFile{}
	v.report = VerifyReport{
		Model: opt.DF11.Name, Commit: opt.DF11.Commit, Against: opt.Model.ID,
		AgainstCommit: opt.Model.Commit,
		AgainstFile:   opt.Model.Listing.WeightFile, Component: component(opt.Model),
		Layout: opt.Plan.Layout, Level: opt.Level,
	}
	if opt.Chosen {
		v.checkChoice(ctx)
	}
	err := v.run(ctx)
	if inexact, ok := errors.AsType[*spans.InexactError](err); ok {
		err = model.Invalidf("", "stored as BF16, but in the original %v", inexact)
	}
	if err != nil && !isFault(err) {
		return nil, err
	}
	what, otherFiles := opt.Misdescribed()
	if err == nil && what != "" {
		v.check.Warn(
			"the manifest describes %s otherwise than the original has it: decode needs --against",
			what)
	}
	r := &v.report
	r.Checked, r.OtherOriginal = v.check.Checked, err != nil && otherFiles
	r.OK, r.Equal = err == nil, err == nil && opt.Level != LevelStructure
	return r, err
}

// isFault reports whether an error says that the model is wrong, not that it could not be looked
// at.
func isFault(err error) bool {
	mismatch, tensor := (*verify.MismatchError)(nil), (*forward.TensorError)(nil)
	return back.IsFault(err) || errors.As(err, &mismatch) || errors.As(err, &tensor)
}

// verification is one call of Verify.
type verification struct {
	PairOptions
	outputs []*spans.Output // of the plan
	check   back.Checker
	report  VerifyReport
}

// run looks at what costs nothing first, then goes the way of the level: back to the original
// files, or forward without encoding.
func (v *verification) run(ctx context.Context) error {
	v.Progress.SetPhase("structure")
	if err := v.check.FreeHashes(ctx); err != nil {
		return err
	}
	if err := v.check.Structure(ctx); err != nil {
		return err
	}
	if err := v.check.CompareFiles(ctx, v.Level != LevelStructure); err != nil ||
		v.Level == LevelStructure {
		return err
	}
	v.Progress.SetPhase(string(v.Level))
	for _, u := range v.Plan.Units {
		if v.DF11.Coded(u.Path) {
			v.report.Weights += u.NElems()
		}
	}
	switch v.Level {
	case LevelProof:
		return v.locate(ctx, v.rebuild(ctx))
	case LevelFull:
		if err := v.compare(ctx); err != nil {
			return err // a weight that differs says more than the hash of its file
		}
		return v.check.OtherHashes(ctx)
	}
	return fmt.Errorf("unknown level %q", v.Level)
}

// checkChoice says what the model under test has chosen for its original. Whoever made the model
// wrote that, and anybody can have commits in a repo, by a pull request, so the files that count
// are compared with those of main.
func (v *verification) checkChoice(ctx context.Context) {
	d, m, p := v.DF11, v.Model, v.Plan
	if named, _ := d.Original(); d.CardModel != "" && !strings.EqualFold(d.CardModel, named) {
		v.check.Warn("the manifest says that the original is %s, the card says %s", named,
			d.CardModel)
	}
	main, err := v.Source.Main(ctx)
	if err != nil {
		v.check.Warn("whether %s is a commit of main is not known: %v", m.Commit, err)
		return
	}
	onMain := map[string]string{}
	for _, f := range main {
		onMain[f.Path] = f.ETag
	}
	counts := slices.Concat(p.Copied, p.Components)
	for _, w := range m.Listing.Weights {
		counts = append(counts, w.File)
	}
	for _, f := range m.Listing.Files {
		if f.Path == p.Config {
			counts = append(counts, f)
		}
	}
	var other []string
	for _, f := range counts {
		if onMain[f.Path] != f.ETag {
			other = append(other, f.Path)
		}
	}
	same := len(other) == 0
	v.report.AgainstOnMain = &same
	if !same {
		v.check.Warn(
			"the original is an older or unmerged commit of %s, which has other files on main: %s",
			m.ID, human.List(other))
	}
}

// rebuild rebuilds every original file, into nothing.
func (v *verification) rebuild(ctx context.Context) error {
	v.report.Published = !slices.Contains(v.Model.SHA256, "")
	files, r, err := v.Rebuilder(v.Workers, v.Progress)
	if err == nil {
		err = addSums(ctx, v.Source, files, v.Workers)
	}
	if err != nil {
		return err
	}
	return r.Run(ctx, files, nil, func(model.File) error {
		v.report.Files++
		return nil
	})
}

// locate says where the fault is that a proof has found, in which any bit of a file may be wrong:
// at which weight if the original may be read for that, else in which file, if the manifest lists
// it otherwise.
func (v *verification) locate(ctx context.Context, proof error) error {
	if rebuild := (*back.RebuildError)(nil); !errors.As(proof, &rebuild) {
		return proof
	}
	if v.Locate {
		v.Progress.SetPhase(string(LevelFull))
		err := v.compare(ctx)
		if isFault(err) {
			v.report.Level = LevelFull
			return err
		}
		if err != nil {
			v.check.Warn("which weight differs is not known: %v", err)
		}
	}
	if err := v.check.OtherHashes(ctx); isFault(err) {
		return err
	}
	return proof
}

// addSums hashes files of the original whose sha256 nobody publishes, such as local ones, a few at
// once: the hash of one is a single chain of steps.
func addSums(ctx context.Context, original model.Source, files []model.File, workers int) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(workers)
	for i, f := range files {
		if f.SHA256 != "" {
			continue
		}
		g.Go(func() (err error) {
			files[i].SHA256, err = model.SumWeights(ctx, original, f)
			return err
		})
	}
	return g.Wait()
}

// compare compares every weight and every copied tensor with the original: once more if a bit that
// was wrong on its way may have caused the first difference.
func (v *verification) compare(ctx context.Context) error {
	verified, err := v.full(ctx)
	inexact := (*spans.InexactError)(nil)
	if (isFault(err) || brokenFile(err) != "" || errors.As(err, &inexact)) && v.anew(ctx) {
		var more []metadata.Verification
		more, err = v.full(ctx)
		verified = metadata.AddVerified(verified, more)
	}
	if gpu := metadata.ByGPU(verified); gpu.NUnits > 0 {
		v.report.GPU = &GPUReport{Kernel: gpu.Decoder, Device: gpu.Device, Units: int(gpu.NUnits)}
	}
	return err
}

// full goes the way of a conversion without encoding. Outputs that it finds equal are not compared
// again.
func (v *verification) full(ctx context.Context) ([]metadata.Verification, error) {
	equal, verified, err := forward.Compare(ctx, forward.Comparison{
		Source: v.Source, Model: v.Model, Outputs: v.outputs, Stored: v.DF11,
		WorkDir: v.WorkDir, Workers: v.Workers, GPU: v.GPU, Progress: v.Progress,
	})
	v.outputs = slices.DeleteFunc(v.outputs,
		func(o *spans.Output) bool { return slices.Contains(equal, o) })
	return verified, err
}

// anew has weights fetched anew where they are read again; it is false if both models are on this
// machine.
func (v *verification) anew(ctx context.Context) bool {
	fetched := v.DF11.Anew(ctx)
	for _, w := range v.Model.Listing.Weights {
		v.Source.Recheck(ctx, w.Path)
	}
	return (fetched || !v.Model.Local) && ctx.Err() == nil
}
