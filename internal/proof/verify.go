// Package proof shows that a DF11 model holds its original, bit for bit: it checks structures, decodes units, compares
// weights, and rebuilds original files. It makes no DF11 and chooses nothing to convert.
package proof

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/df11-convert/df11-convert/internal/compare"
	"github.com/df11-convert/df11-convert/internal/exactf32"
	"github.com/df11-convert/df11-convert/internal/fetch"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/progress"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/verify"
)

// Options say which model is checked, against which original, and how far.
type Options struct {
	DF11 *model.DF11
	// Source, Model and Plan are the original.
	Source  model.Source
	Model   *model.Model
	Plan    *plan.Plan
	Level   Level
	Workers int
	// WorkDir takes the spools of a remote original.
	WorkDir  string
	GPU      compare.GPU // nil: none
	Progress *progress.Counters
}

// Verify verifies a DF11 model, up to its first fault. If the model is at fault there are a report and a *verify.MismatchError,
// *compare.TensorError, *RebuildError, *verify.StructureError or *model.InvalidError. If the verification could not run there is another
// error, and no report.
func Verify(ctx context.Context, opt Options) (*Report, error) {
	if opt.Progress == nil {
		opt.Progress = new(progress.Counters)
	}
	opt.Workers = max(1, opt.Workers)
	v := &verification{Options: opt, outputs: spans.Outputs(opt.Plan)}
	v.report = Report{
		Model: opt.DF11.Name, Commit: opt.DF11.Commit, Against: opt.Model.ID, AgainstFile: opt.Model.Listing.WeightFile,
		Layout: opt.Plan.Layout, Level: opt.Level,
	}
	err := v.run(ctx)
	if inexact, ok := errors.AsType[*exactf32.InexactError](err); ok {
		err = model.Invalidf("", "stored as BF16, but in the original %v", inexact)
	}
	if err != nil && !isFault(err) {
		return nil, err
	}
	if err != nil {
		v.report.OtherOriginal = otherOriginal(opt.DF11.Manifest, opt.Model)
		return &v.report, err
	}
	if what := misdescribed(opt.DF11, opt.Model, opt.Plan); what != "" {
		v.warn("the manifest describes %s otherwise than the original has it: decode needs --against", what)
	}
	v.report.OK, v.report.Equal = true, opt.Level == LevelProof || opt.Level == LevelFull
	return &v.report, nil
}

// isFault reports whether an error says that the model is wrong, not that it could not be looked at.
func isFault(err error) bool {
	mismatch, tensor := (*verify.MismatchError)(nil), (*compare.TensorError)(nil)
	structure, invalid := (*verify.StructureError)(nil), (*model.InvalidError)(nil)
	return errors.As(err, &mismatch) || errors.As(err, &tensor) || errors.As(err, &structure) || errors.As(err, &invalid)
}

// verification is one call of Verify.
type verification struct {
	Options
	outputs  []*spans.Output       // of the plan
	unhashed []metadata.OutputFile // weight files whose sha256 only reading them can tell
	gpuUnits int                   // that a GPU has compared
	report   Report
}

func (v *verification) run(ctx context.Context) error {
	v.Progress.SetPhase("structure")
	if err := v.freeHashes(ctx); err != nil {
		return err
	}
	if err := v.structure(ctx); err != nil {
		return err
	}
	v.Progress.SetPhase(string(v.Level))
	switch v.Level {
	case LevelStructure:
		return nil
	case LevelProof:
		v.report.Weights, v.report.Published = v.unitWeights(), !slices.Contains(v.Model.SHA256, "")
		return v.rebuild(ctx)
	case LevelFull:
		v.report.Weights = v.unitWeights()
		err := v.again(ctx, v.full)
		if err == nil { // a weight that differs says more than the hash of its file
			err = v.costlyHashes(ctx)
		}
		if v.gpuUnits > 0 {
			v.report.GPU = &GPUReport{Units: v.gpuUnits}
			v.report.GPU.Kernel, v.report.GPU.Device = v.GPU.Describe()
		}
		return err
	}
	return fmt.Errorf("unknown level %q", v.Level)
}

// unitWeights counts the weights of the units that are stored as DF11.
func (v *verification) unitWeights() (n int64) {
	for _, u := range v.Plan.Units {
		if v.DF11.Coded(u.Path) {
			n += u.NElems()
		}
	}
	return n
}

// otherOriginal reports whether the manifest has other sums for the files of the original: the model was made of another one.
func otherOriginal(m *metadata.Manifest, original *model.Model) bool {
	if m == nil {
		return false
	}
	for i, w := range original.Listing.Weights {
		for _, f := range m.Source.Files {
			if f.Path == w.Path && otherSum(f, original.SHA256[i]) {
				return true
			}
		}
	}
	return false
}

// otherSum reports whether the manifest has another sha256 for a file of the original than it has. Both may be unknown, "".
func otherSum(f metadata.SourceFile, sum string) bool {
	return sum != "" && f.SHA256 != "" && f.SHA256 != sum
}

// again compares a second time if a damaged copy of the original may have caused the first difference.
func (v *verification) again(ctx context.Context, compare func(context.Context) error) error {
	err := compare(ctx)
	if err == nil {
		return nil
	}
	damaged := false
	for _, w := range v.Model.Listing.Weights {
		damaged = v.Source.Recheck(ctx, w.Path) || damaged
	}
	if !damaged {
		return err
	}
	v.gpuUnits = 0
	return compare(ctx)
}

// rebuild writes every original weight file again, to a hash, and compares its sha256 with the published one.
func (v *verification) rebuild(ctx context.Context) error {
	if err := CheckKept(v.Plan); err != nil {
		return err
	}
	r := NewRebuilder(v.DF11, v.outputs, v.Workers)
	for i, w := range v.Model.Listing.Weights {
		want := v.Model.SHA256[i]
		if want == "" {
			var err error
			if want, err = fetch.Sum(ctx, v.Source, i, w.Path, w.Size); err != nil {
				return err
			}
		}
		if err := r.Prove(ctx, w.Path, w.Header, want); err != nil {
			return err
		}
		v.Progress.Verified.Add(w.Size)
		v.report.Files++
	}
	return nil
}
