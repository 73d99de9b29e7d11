package convert

import (
	"cmp"
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
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// VerifyOptions say which DF11 model is compared with which original, and how far.
type VerifyOptions struct {
	back.Pair
	forward.Means

	Level Level
	// Locate lets a comparison that finds the weight follow a failed proof.
	Locate  bool
	Chosen  bool   // the DF11 model itself named the original
	WorkDir string // holds the spools of a remote original
}

// Verify checks a DF11 model by itself, compares it with its original, and compares the files next
// to its weights. The report has a verdict on each. An error with a report is the model's fault, or
// else the pair's. An error without a report says that the verification could not run.
func Verify(ctx context.Context, opt VerifyOptions) (*VerifyReport, error) {
	opt.Complete()
	v := &verification{VerifyOptions: opt}
	if opt.Plan != nil {
		var err error
		if v.outputs, err = spans.Outputs(opt.Plan); err != nil {
			return nil, err
		}
	}
	chosen, err := choiceOf(ctx, opt)
	if err != nil {
		return nil, err
	}
	v.check = back.NewChecker(opt.Pair, opt.Workers, chosen.main)
	for _, w := range chosen.warnings {
		v.check.Warn("%s", w)
	}
	v.report = VerifyReport{
		Model: opt.DF11.Name, Commit: opt.DF11.Commit, Against: opt.Model.ID,
		AgainstCommit: opt.Model.Commit, AgainstOnMain: chosen.onMain,
		AgainstFile: opt.Model.Original().Listing.WeightFile, Component: component(opt.Model.Original()),
		Layout: v.check.Layout(), Level: opt.Level,
	}
	if opt.Plan != nil {
		v.report.TensorsLeftOut = opt.Plan.LeftOut()
	}
	if err := v.run(ctx); err != nil {
		return nil, err
	}
	r := &v.report
	if r.Difference != nil && opt.IsOfOther() {
		repo, commit := opt.DF11.Original()
		r.MadeFrom = cmp.Or(strings.TrimSuffix(repo+"@"+commit, "@"), "other files")
	}
	r.Checked, r.OK = v.check.Checked(), r.first() == nil
	return r, r.first()
}

// VerifyAlone checks a DF11 model whose original no one names. Beyond LevelStructure, it compares
// the SHA-256 of every file with the manifest, and rebuilds the original's files as the manifest
// describes them. That shows that the model is what the manifest says, and not where it comes from,
// so the report stays at LevelStructure. Every fault is the model's. Its errors are those of
// [Verify].
func VerifyAlone(ctx context.Context, d *model.DF11, level Level,
	means forward.Means) (*VerifyReport, error) {
	opt := VerifyOptions{Pair: back.Pair{DF11: d}, Level: level, Means: means}
	opt.Complete()
	v := &verification{VerifyOptions: opt, check: back.NewChecker(opt.Pair, opt.Workers, nil)}
	c, r := v.check, &v.report
	*r = VerifyReport{Model: d.Name, Commit: d.Commit, Layout: c.Layout(), Level: LevelStructure}
	v.Progress.SetPhase("structure")
	for _, look := range []func(context.Context) error{
		c.FreeHashes, v.hashes, v.listed, v.structure, v.restore} {
		if err := v.judge(look(ctx)); err != nil {
			return nil, err
		}
	}
	c.CountTensors()
	r.Checked, r.OK = c.Checked(), !r.faulty()
	return r, r.first()
}

// structure checks the model alone.
func (v *verification) structure(ctx context.Context) (err error) {
	v.units, err = v.check.Structure(ctx)
	return err
}

// hashes compares every weight file with the manifest, if the level asks for it.
func (v *verification) hashes(ctx context.Context) error {
	if v.Level == LevelStructure {
		return nil
	}
	return v.check.OtherHashes(ctx)
}

// listed compares the files next to the weights with the manifest.
func (v *verification) listed(ctx context.Context) error {
	return v.check.CompareWithManifest(ctx, v.Level != LevelStructure)
}

// restore rebuilds the original's files as the manifest describes them, without writing them, if
// the level asks for it and nothing is wrong so far.
func (v *verification) restore(ctx context.Context) error {
	if v.Level == LevelStructure || v.report.faulty() || v.DF11.Manifest == nil {
		return nil
	}
	v.Progress.SetPhase(string(LevelProof))
	files, r, err := v.Rebuilder(v.Workers, v.Progress)
	if _, left := errors.AsType[*back.LeftOutError](err); left {
		v.check.Warn("%v", err)
		return nil
	}
	if err == nil {
		err = r.Run(ctx, files, nil, func(model.File) error {
			v.report.Files++
			return nil
		})
	}
	if back.IsFault(err) { // no original, so no pair
		v.report.Damage = err
		return nil
	}
	return err
}

// verification is one call of Verify.
type verification struct {
	VerifyOptions
	outputs []*spans.Output // of the plan
	check   *back.Checker
	units   back.UnitSizes // that structure found
	report  VerifyReport
	hashed  []model.File // the original's, with every SHA-256; nil: not known yet
}

// run does the cheap checks first. Then it does what the level asks: rebuild the original files, or
// go forward without encoding. It decodes no weights of a pair that can't be equal.
func (v *verification) run(ctx context.Context) error {
	c, r := v.check, &v.report
	v.Progress.SetPhase("structure")
	for _, look := range []func(context.Context) error{v.files, c.FreeHashes, v.structure} {
		if err := v.judge(look(ctx)); err != nil {
			return err
		}
	}
	if !r.faulty() {
		_ = v.judge(c.Fits(v.units)) // it reads nothing, so every error is a fault
	}
	if r.faulty() {
		return nil
	}
	if v.Level == LevelStructure {
		c.CompareListed()
		return nil
	}
	v.Progress.SetPhase(string(v.Level))
	for _, u := range v.Plan.Units {
		if v.DF11.Coded(u.Path) {
			r.Weights += u.NElems()
		}
	}
	if err := v.weights(ctx); err != nil || r.faulty() {
		return err
	}
	return v.alone(ctx)
}

// alone finds out whether the model, which holds the original's weights, restores the original's
// files without it.
func (v *verification) alone(ctx context.Context) error {
	files, err := v.original(ctx)
	if err != nil {
		return err
	}
	why := v.check.CheckAlone(files)
	restores := why == nil
	v.report.Alone, v.report.WhyNotAlone = &restores, why
	return nil
}

// original returns the weight files of the original with the SHA-256 of each. It computes those
// that no one has published.
func (v *verification) original(ctx context.Context) ([]model.File, error) {
	if v.hashed == nil {
		files := v.Model.Original().Files()
		if err := addSums(ctx, v.Source, files, v.Workers); err != nil {
			return nil, err
		}
		v.hashed = files
	}
	return v.hashed, nil
}

// judge records the first fault of each subject. It returns an error that isn't a fault.
func (v *verification) judge(err error) error {
	f := &v.report.Faults
	switch model.SubjectOf(err) {
	case model.OfModel:
		f.Damage = cmp.Or(f.Damage, err)
	case model.OfPair:
		f.Difference = cmp.Or(f.Difference, err)
	default:
		return err
	}
	return nil
}

// files compares the files next to the weights.
func (v *verification) files(ctx context.Context) error {
	err := v.check.CompareFiles(ctx, v.Level != LevelStructure)
	v.report.FilesCompared = err == nil || model.SubjectOf(err) == model.OfPair
	return err
}

// weights compares the weights as the level says, or finds where they differ. Only here is equality
// claimed.
func (v *verification) weights(ctx context.Context) (err error) {
	switch v.Level {
	case LevelProof:
		err = v.locate(ctx, v.rebuild(ctx))
	case LevelFull:
		err = v.compare(ctx)
		if err == nil || model.SubjectOf(err) != "" { // a hash says whether the file is damaged
			if err := v.judge(v.check.OtherHashes(ctx)); err != nil {
				return err
			}
		}
	default:
		err = fmt.Errorf("unknown level %q", v.Level)
	}
	if err = v.judge(err); err == nil && v.report.first() == nil {
		v.report.Equal = Equality{shown: true}
	}
	return err
}

// A choice is what to know of the original that a model has chosen. It's empty if the user has.
type choice struct {
	main     *plan.Source // to compare the model's files with
	onMain   *bool        // the original's main has the same weight files
	warnings []string
}

// choiceOf looks at the original's main, if the model has chosen the original.
func choiceOf(ctx context.Context, opt VerifyOptions) (c choice, err error) {
	if !opt.Chosen {
		return c, nil
	}
	d, m := opt.DF11, opt.Model
	if named, _ := d.Original(); d.CardModel != "" && !strings.EqualFold(d.CardModel, named) {
		c.warnings = append(c.warnings, fmt.Sprintf(
			"the manifest says that the original is %s, the card says %s", named, d.CardModel))
	}
	var other []string
	if c.main, other, err = opt.Main(ctx); err != nil {
		return c, fmt.Errorf("list the files of %s (main): %w", m.ID, err)
	}
	c.onMain = new(len(other) == 0)
	if len(other) > 0 {
		c.warnings = append(c.warnings, fmt.Sprintf("the original is an older or unmerged commit "+
			"of %s: main has other weights in %s", m.ID, human.List(other)))
	}
	return c, nil
}

// rebuild rebuilds every original file without writing it.
func (v *verification) rebuild(ctx context.Context) error {
	v.report.Published = !slices.Contains(v.Model.Original().SHA256, "")
	_, r, err := v.Rebuilder(v.Workers, v.Progress)
	if err != nil {
		return err
	}
	files, err := v.original(ctx)
	if err != nil {
		return err
	}
	return r.Run(ctx, files, nil, func(model.File) error {
		v.report.Files++
		return nil
	})
}

// locate finds the fault behind a failed proof, which may be any wrong bit of a file. If the
// original may be read, it looks for the weight. Otherwise it looks for a file with another SHA-256
// than the manifest lists.
func (v *verification) locate(ctx context.Context, proof error) error {
	if model.SubjectOf(proof) == "" {
		return proof
	}
	if v.Locate {
		v.Progress.SetPhase(string(LevelFull))
		err := v.compare(ctx)
		switch {
		case model.SubjectOf(err) != "":
			v.report.Level, proof = LevelFull, err
		case err != nil:
			v.check.Warn("couldn't find out which weight differs: %v", err)
		}
	}
	if err := v.check.OtherHashes(ctx); model.SubjectOf(err) != "" {
		return errors.Join(v.judge(proof), v.judge(err))
	}
	return proof
}

// addSums hashes the files of a source's original that have no published SHA-256, such as local
// ones. It hashes a few at once, because hashing one file can't be divided.
func addSums(ctx context.Context, src model.Source, files []model.File, workers int) error {
	original := model.OriginalSource(src)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(workers)
	for i, f := range files {
		if f.SHA256 != "" {
			continue
		}
		g.Go(func() (err error) {
			files[i].SHA256, err = model.Sum(ctx, original.OpenFile, f.File, "")
			return err
		})
	}
	return g.Wait()
}

// compare compares every weight and every copied tensor with the original. After a difference that
// the network may have caused, it compares once more.
func (v *verification) compare(ctx context.Context) error {
	verified, err := v.full(ctx)
	if (model.SubjectOf(err) != "" || model.WrongFile(err) != "") && v.refetch(ctx) {
		var more []metadata.Verification
		more, err = v.full(ctx)
		verified = metadata.AddVerified(verified, more)
	}
	v.report.Verified = verified
	return err
}

// full goes forward like a conversion, without encoding. It doesn't compare again the outputs that
// it found equal.
func (v *verification) full(ctx context.Context) ([]metadata.Verification, error) {
	equal, verified, err := forward.Compare(ctx, forward.Comparison{
		Source: v.Source, Model: v.Model, Outputs: v.outputs, Stored: v.DF11,
		WorkDir: v.WorkDir, Means: v.Means,
	})
	v.outputs = slices.DeleteFunc(v.outputs,
		func(o *spans.Output) bool { return slices.Contains(equal, o) })
	return verified, err
}

// refetch makes the next read fetch weights again. It returns false if both models are local.
func (v *verification) refetch(ctx context.Context) bool {
	fetched := v.DF11.Refetch(ctx)
	for _, w := range v.Model.Original().Listing.Weights {
		fetched = model.OriginalSource(v.Source).Recheck(ctx, w.Path) || fetched
	}
	return fetched
}
