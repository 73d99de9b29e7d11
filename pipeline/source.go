package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/address"
	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/disk"
	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/usage"
)

// ForReaders lists the readers that Recipe.For can name.
func ForReaders() []string { return []string{plan.OfficialReader} }

// planOptions returns the options of a plan with a recipe.
func (s *session) planOptions(ctx context.Context, r Recipe) (plan.Options, error) {
	opt := plan.Options{Like: r.Like, Component: r.Component, WeightFile: r.File, ExactF32: r.ExactF32,
		Unfilled: r.Unfilled, Include: r.Include, For: r.For}
	layout, err := catalog.ParseLayout(r.Layout)
	if err != nil {
		return opt, usage.Of(err)
	}
	opt.Layout = layout
	if opt.Like, err = address.RepoID(opt.Like); err != nil {
		return opt, err
	}
	if err := plan.CheckLike(opt.Like); err != nil {
		return opt, err
	}
	if opt.For != "" && opt.For != plan.OfficialReader {
		return opt, usage.Errorf("--for: only %s can be named; without it, the result is for df11",
			plan.OfficialReader)
	}
	if r.PatternDict == "" {
		return opt, nil
	}
	b, err := s.readDict(ctx, r.PatternDict)
	if err != nil {
		return opt, fmt.Errorf("pattern dict: %w", err)
	}
	if opt.PatternDict, err = catalog.ParsePatternDict(b); err != nil {
		return opt, hint.On(usage.Errorf("pattern dict %s: %w", r.PatternDict, err), hint.DictForm)
	}
	return opt, nil
}

// readDict reads a file with a pattern dict once, because a pipe has nothing left for a second
// time.
func (s *session) readDict(ctx context.Context, path string) (b []byte, err error) {
	if s.dict == nil {
		s.dict, err = disk.ReadInput(ctx, path, catalog.MaxDictBytes)
	}
	return s.dict, err
}

// opened is a source with its plan. openSource leaves the plan nil.
type opened struct {
	source model.Source
	model  *model.Model
	plan   *plan.Plan
	// refused says why an original can't be planned with the dict of a DF11 model; plan is nil
	// then.
	refused error
	opt     plan.Options
	// proof compares what the source was made from, and what a plan copies, with known hashes; nil:
	// nothing to compare
	proof func(context.Context, *plan.Plan) error
	// byManifest says that only the manifest of a DF11 model describes the source. named is the
	// repo that this manifest names as the original, with the commit, or "": a hint.
	byManifest bool
	named      string
	// what a plan for the official loader would make, if it differs; only the command plan asks
	official *Alternative
}

func (o *opened) Close() error { return o.source.Close() }

// proven says what proof compares with.
func (o *opened) proven() string {
	if o.byManifest {
		return "what its manifest says of the original"
	}
	return "its original"
}

// open reads a source's headers and small files, and makes the plan.
func (s *session) open(ctx context.Context, spec string, recipe Recipe, onHub bool) (*opened, error) {
	opt, err := s.planOptionsAt(ctx, recipe, spec, onHub)
	if err != nil {
		return nil, err
	}
	o, err := s.openPlanned(ctx, spec, opt, onHub)
	if opt.Layout == "" || err == nil && !needsArranging(o, opt) || err != nil && !wraps[*plan.RefusedError](err) {
		return o, err
	}
	other, otherErr := s.openForLayout(ctx, spec, opt, onHub, isDF11(err))
	if other == nil && otherErr == nil {
		return o, err
	}
	if o != nil {
		otherErr = errors.Join(otherErr, o.Close())
	}
	if otherErr != nil {
		return nil, otherErr
	}
	opt.Component, opt.WeightFile = "", "" // that choice is made
	return other, s.plan(ctx, other, spec, opt)
}

// isDF11 reports whether an error refuses a source that is a DF11 model.
func isDF11(err error) bool {
	refused, _ := errors.AsType[*plan.RefusedError](err)
	return refused != nil && refused.Next == plan.IsDF11
}

// openPlanned opens a source that isn't DF11, and makes the plan.
func (s *session) openPlanned(ctx context.Context, spec string, opt plan.Options,
	onHub bool) (*opened, error) {
	o, err := s.openSource(ctx, spec, opt, onHub)
	if err == nil {
		err = s.plan(ctx, o, spec, opt)
	}
	if isDF11(err) {
		err = hint.On(err, hint.IsDF11.With("model", spec))
	}
	if err != nil {
		return nil, err
	}
	return o, nil
}

// plan makes the plan of an open source. On an error it closes the source.
func (s *session) plan(ctx context.Context, o *opened, spec string, opt plan.Options) (err error) {
	if o.plan, err = plan.New(ctx, o.model.Listing, opt); err == nil {
		o.opt, err = opt, cmp.Or(checkIncluded(o, opt.Include), o.source.Carries(o.plan),
			o.model.CheckCopies(o.plan))
	}
	if err != nil {
		o.Close()
		if o.byManifest {
			err = byManifest(err, spec)
		}
		err = o.model.Explain(err)
		return fmt.Errorf("%s: %w", spec, err)
	}
	return nil
}

// planOptionsAt returns the options of a plan for a source. An address may name the file to
// convert.
func (s *session) planOptionsAt(ctx context.Context, r Recipe, spec string,
	onHub bool) (plan.Options, error) {
	if onHub || !model.Exists(spec) {
		a, err := address.Parse(spec)
		if err != nil {
			return plan.Options{}, err
		}
		r.File = cmp.Or(r.File, a.File)
	}
	return s.planOptions(ctx, r)
}

// inexact adds a hint of its own to an error about F32 weights that BF16 can't hold, if the model
// can't be converted without ExactF32 either.
func (o *opened) inexact(ctx context.Context, err error) error {
	if !wraps[*spans.InexactError](err) {
		return err
	}
	opt := o.opt
	opt.ExactF32 = false
	if _, without := plan.New(ctx, o.model.Listing, opt); wraps[*plan.RefusedError](without) {
		return hint.On(err, hint.OnlyF32)
	}
	return err
}

// planOfficial finds what a plan for the official loader would make, unless the plan is for it. It
// leaves it nil if that loader can't load the model.
func (o *opened) planOfficial(ctx context.Context, opt plan.Options) error {
	if !o.plan.HoldsParameters() || opt.PatternDict != nil {
		return nil
	}
	opt.For = plan.OfficialReader
	p, err := plan.New(ctx, o.model.Listing, opt)
	if wraps[*plan.RefusedError](err) {
		return nil
	}
	if err != nil {
		return err
	}
	outputs, err := spans.Outputs(p)
	i := slices.IndexFunc(p.Readers, func(r plan.Reader) bool { return r.Name == opt.For })
	o.official = &Alternative{spans.LikelyBytes(outputs), string(p.Readers[i].Loads)}
	return err
}

// openSource reads the headers and small files of a source: a folder, a file, or a Hub repo.
func (s *session) openSource(ctx context.Context, spec string, opt plan.Options,
	onHub bool) (*opened, error) {
	if onHub || !model.Exists(spec) {
		o, err := s.openRepo(ctx, spec, opt)
		if !onHub && errors.Is(err, hub.ErrNotFound) {
			err = hintPath(err, spec)
		}
		return o, err
	}
	if err := unfinished(spec); err != nil {
		return nil, err
	}
	o := &opened{}
	var err error
	if o.source, o.model, err = model.OpenLocal(ctx, spec, opt, s.shares.Tables); err != nil {
		return nil, fmt.Errorf("%s: %w", spec, err)
	}
	return o, nil
}

// openRepo is openSource for a Hub id, even if a folder has that name.
func (s *session) openRepo(ctx context.Context, spec string, opt plan.Options) (*opened, error) {
	o := &opened{}
	c, repo, revision, err := s.repo("source", spec)
	if err != nil {
		return nil, err
	}
	info, err := s.list(ctx, c, repo, revision)
	if err == nil {
		o.source, o.model, err = model.OpenListed(ctx, c, info, repo, revision, opt,
			s.shares.Tables)
	}
	if err != nil {
		return nil, sourceError(spec, err)
	}
	return o, nil
}

// sourceError names the source in an error, unless the text does already.
func sourceError(spec string, err error) error {
	if wraps[*hub.Error](err) {
		return err
	}
	return fmt.Errorf("%s: %w", spec, err)
}

// checkIncluded refuses patterns of --include that match no file, and names of files that can't
// come along. What a pattern such as *.md matches besides is simply left out.
func checkIncluded(o *opened, include []string) error {
	if len(include) == 0 {
		return nil
	}
	folder, files := o.model.Listing.Folder, o.model.Listing.Files
	if folder == nil {
		return hint.On(usage.Errorf("--include: %s is a repo, which is copied without it", o.model.ID),
			hint.IncludeRepo)
	}
	paths := pathsOf(files)
	if glob := folder.Unmatched(include, paths); glob != "" {
		return hint.On(usage.Errorf("--include %s: no file of the folder matches", glob),
			hint.IncludeNone)
	}
	for _, f := range o.plan.NotCopied {
		if slices.Contains(include, f.Path) {
			return hint.On(usage.Errorf("--include: %s can't be copied (%s)", f.Path, f.Why), hint.IncludeNever)
		}
	}
	return nil
}

func pathsOf(files []plan.File) (paths []string) {
	for _, f := range files {
		paths = append(paths, f.Path)
	}
	return paths
}
