package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/convert"
	"github.com/df11-convert/df11-convert/internal/disk"
	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/publish"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/usage"
)

// Convert converts a source: a Hub repo ("org/name", "org/name@revision", or its address), a
// folder, or one .safetensors file. An existing path wins over a Hub id. With a layout, the source
// may be a DF11 model, too. When Convert returns no error, the folder and the repo are complete,
// and every weight was compared with the source, with two exceptions that the report names: files
// that an earlier run has verified, and a target that was up to date. After an error, the same call
// continues where this one stopped. If ctx ends before that, the error wraps its cause. Errors are
// of type *Error.
func Convert(ctx context.Context, source string, opt Options) (*Report, error) {
	report, err := convertSource(ctx, source, opt)
	if err == nil { // the result is complete, even if ctx ended in the last moment
		return report, nil
	}
	return nil, opt.ended(ctx, err)
}

// ended describes how a call ended: by its context, which counts first, or by err.
func (m *Means) ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		err = context.Cause(ctx)
		return &Error{Kind: ErrInterrupted, err: err}
	}
	if m.Memory == 0 && isMemory(err) {
		err = hint.On(err, hint.MemoryLimit)
	}
	return described(err)
}

func convertSource(ctx context.Context, source string, opt Options) (_ *Report, err error) {
	s, err := opt.Means.begin(budget.ForConversion)
	if err != nil {
		return nil, err
	}
	defer s.close()
	defer func() { err = s.judged(err) }()
	opt.Hubs = s.Hubs // whose connections the session closes
	if err := opt.check(); err != nil {
		return nil, err
	}
	at, folder, err := s.upToDate(ctx, &opt, source)
	if err != nil {
		return nil, err
	}
	if at != nil {
		if err := at.RemoveWork(folder, opt.part().String(), s.shares.Budget); err != nil {
			s.Log.Warn("can't remove what an earlier run left on this machine", "err", err)
		}
		s.sayOtherWork(&opt, folder)
		return reportOf(convert.UpToDateReport(at)), nil
	}
	src, err := s.openWhole(ctx, &opt, source)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	src.model.CompareMain(ctx)
	if err := s.prove(ctx, &opt, src); err != nil {
		return nil, err
	}
	job, err := s.job(ctx, &opt, src)
	if err != nil {
		return nil, err
	}
	report, err := s.run(ctx, &opt, src, job)
	if err != nil {
		return nil, src.otherOriginal(src.inexact(ctx, err))
	}
	made := reportOf(report)
	made.Note, made.Left = noteOf(src.plan), src.plan.Stay
	made.Made.Warnings = slices.Concat(made.Made.Warnings, src.model.Discloses(src.plan))
	made.Unloadable = src.plan.NoLoader() != ""
	if src.proof != nil {
		made.Decoded = src.proven()
		if src.byManifest {
			made.Decoded += "; the original itself wasn't read"
		}
	}
	return made, nil
}

// run opens the targets and makes what they lack.
func (s *session) run(ctx context.Context, opt *Options, src *opened, job convert.Options) (
	report *convert.Report, err error) {
	stop := s.watch()
	defer func() { stop(err) }()
	run, err := convert.Open(ctx, job)
	if err != nil {
		return nil, err
	}
	s.announce(opt, src, job.OutDir, run)
	return run.Convert(ctx)
}

// announce says who may see the target, and what to know of the result, which may go to a folder.
// Of targets that are up to date, it says only what's not as a flag asked.
func (s *session) announce(opt *Options, src *opened, folder string, run *convert.Run) {
	repo, v := run.Visibility()
	if run.UpToDate() {
		if v.Asked && v.Open && v.Stays {
			s.say("%s %s", repo, v)
		}
		return
	}
	for _, w := range slices.Concat(src.plan.Warnings, src.model.Discloses(src.plan)) {
		s.Log.Warn(w)
	}
	if folder != "" && src.model.Local && src.model.Listing.WeightFile == "" {
		if inside, err := disk.IsWithin(folder, src.model.Folder); err == nil && inside {
			s.say("the result goes into %s, inside the folder of the source; -o FOLDER puts it "+
				"elsewhere", folder)
		}
	}
	if src.model.Local {
		for _, text := range carrying(src.plan.Carried, opt.Push) {
			s.say("%s", text)
		}
		if keys := src.model.MetadataKeys(); opt.Push && len(keys) > 0 {
			s.say("the manifest keeps the headers of the weight files, with __metadata__: %s",
				human.List(keys))
		}
		if opt.Push && opt.Original == "" && src.named == "" {
			s.say("%s", Unproved)
		}
	}
	if opt.part().Whole() { // the sizes of a part differ
		s.say("%s", gain(src.model, src.plan, run.LikelyBytes(), false))
	}
	if opt.Push {
		s.say("%s %s", repo, v)
	}
	for _, w := range run.Warnings() {
		s.Log.Warn(w)
	}
}

// otherOriginal says of a DF11 source which doesn't decode to what it names as its original that
// this is so: neither of them needs to be damaged.
func (o *opened) otherOriginal(err error) error {
	d := o.model.DecodedFrom
	wrong, ok := errors.AsType[*model.SourceError](err)
	if d == nil || !ok {
		return err
	}
	repo, _ := d.Original()
	return wrongDF11(model.Invalidf("", "%s doesn't decode to the weights of %s, which it names as its "+
		"original: %s", d.Name, repo, wrong), d.Name)
}

// noteOf says what the user should know about a result: that no known loader takes it, and what
// large share stays BF16.
func noteOf(p *plan.Plan) string { return strings.Trim(p.NoLoader()+"; "+p.Stays(), "; ") }

// openWhole opens and plans a source, and refuses one that a few of its bytes rule out.
func (s *session) openWhole(ctx context.Context, opt *Options, source string) (*opened, error) {
	src, err := s.open(ctx, source, opt.Recipe, opt.OnHub)
	if err != nil {
		return nil, s.publishHint(ctx, err, opt, source)
	}
	if err := s.checkSamples(ctx, src); err != nil {
		src.Close()
		return nil, err
	}
	return src, nil
}

// publishHint says how to publish a folder with a DF11 model, if that's what the user tried.
func (s *session) publishHint(ctx context.Context, err error, opt *Options, source string) error {
	if !isDF11(err) || !opt.Push || opt.OnHub || !model.Exists(source) {
		return err
	}
	d, openErr := s.openDF11(ctx, source)
	if openErr != nil {
		return err
	}
	defer d.Close()
	h := hint.PublishFile
	if catalog.Layout(d.Layout()).Family() != catalog.ComfyUI && d.Manifest != nil {
		h = hint.PublishDF11.With("layout", d.Layout())
	}
	return hint.On(err, h.With("folder", source))
}

func (s *session) checkSamples(ctx context.Context, src *opened) error {
	if err := s.shares.Check(src.model, src.plan); err != nil {
		return err
	}
	return s.sample(ctx, src)
}

// sample returns the error of a source whose weights a few of its bytes rule out.
func (s *session) sample(ctx context.Context, src *opened) error {
	// samples find most F32 that BF16 can't hold, and local files of which DF11 can hold nothing,
	// as in Plan. Of a Hub's file they would be fetched twice.
	isFile := src.model.Local && !src.model.Decoded && src.model.From == nil
	if isFile || spans.NExactF32(src.plan) > 0 {
		size, err := budget.Sample(ctx, src.source, src.plan, budget.DefaultSampleBytes(src.model))
		if err != nil {
			return src.inexact(ctx, err)
		}
		if err := size.CheckGain(src.plan); err != nil {
			return err
		}
	}
	// of a local source all bytes are compared: a conversion that fails leaves a folder behind
	_, err := budget.SampleAliases(ctx, src.source, src.plan, src.model.Local)
	return err
}

// job turns options into those of a run.
func (s *session) job(ctx context.Context, o *Options, src *opened) (convert.Options, error) {
	job := convert.Options{
		Source: src.source, Model: src.model, Plan: src.plan,
		OutDir: o.Folder, Force: o.Force, License: o.License, Disk: o.Disk,
		Part: o.part(), Finish: o.Finish,
		Version: s.Version, Asked: src.opt.Asked(o.License), Log: s.Log, Means: s.means(),
	}
	repo := ""
	if o.Push {
		push, err := s.push(ctx, o, src.model.Name)
		if err != nil {
			return job, err
		}
		if err := checkTokens(ctx, src, push, o.Recipe.Include); err != nil {
			return job, err
		}
		job.Push, repo = push, push.Repo
	} else if job.OutDir == "" {
		job.OutDir = src.model.Name + names.ResultEnd
		if err := notLink(job.OutDir); err != nil {
			return job, err
		}
	}
	if job.OutDir != "" && !job.Force {
		if err := checkFolder(job.OutDir, src.model.Name); err != nil {
			return job, err
		}
	}
	job.WorkDir = o.workDir(repo, src.plan.Digest())
	s.sayOtherWork(o, job.WorkDir)
	err := s.openGPU(&job.Means)
	job.Memory = s.shares
	return job, err
}

// checkTokens refuses to show strangers what looks like an access token, unless the user has named
// its file.
func checkTokens(ctx context.Context, src *opened, push *publish.Push, include []string) error {
	file, text := src.model.Token(src.plan, include)
	if file == "" || !push.Visibility(ctx, src.model).Open {
		return nil
	}
	return catalog.Refuse(hint.Token.With("file", file), "%s may be public, but %s", push.Repo,
		text)
}

// notLink refuses to write to a folder that the caller didn't name if a link or a file is in its
// place: a link may come with a source, and lead anywhere. One that the caller names is followed.
func notLink(folder string) error {
	if st, err := os.Lstat(folder); err == nil && !st.IsDir() {
		return &fs.PathError{Op: "open", Path: folder,
			Err: errors.New("it exists and isn't a folder; choose another one with -o")}
	}
	return nil
}

// upToDate returns the target's state if it already holds everything that a run would publish, and
// the work folder of such a run. It needs no plan. In doubt, it returns nil, because the run that
// follows finds out more. The error is that of a source of which the Hub says nothing.
func (s *session) upToDate(ctx context.Context, o *Options,
	source string) (at *publish.UpToDate, work string, err error) {
	recipe, err := s.planOptions(ctx, o.Recipe)
	if err != nil || !o.Push || o.Folder != "" || o.Force || !o.part().Whole() ||
		!o.OnHub && model.Exists(source) {
		return nil, "", nil //nolint:nilerr // the run that follows meets it again
	}
	c, repo, revision, err := s.repo("source", source)
	if err != nil {
		return nil, "", nil //nolint:nilerr // the run that follows meets it again
	}
	from, err := c.Info(ctx, repo, revision)
	if err != nil {
		return nil, "", sourceError(source, err)
	}
	s.listed = &listed{repo, revision, from}
	push, err := s.push(ctx, o, model.NameOf(repo, from))
	if err != nil {
		return nil, "", nil //nolint:nilerr // the run that follows meets it again
	}
	at = push.UpToDate(ctx, from, c, recipe.Asked(o.License), s.shares.Budget)
	if at == nil {
		return nil, "", nil
	}
	return at, o.workDir(push.Repo, at.Manifest.Plan.Digest), nil
}

// Unproved says what readers can't do with the result of a local source.
const Unproved = "readers can't verify the result, because they don't have the files of this source; if it's a " +
	"copy of a Hub repo, add --original org/name, else upload it first and convert that"

// prove compares a local source with the repo of Original. Offline, nothing is compared, and so
// nothing is claimed.
func (s *session) prove(ctx context.Context, o *Options, src *opened) error {
	if o.Original != "" && !src.model.Local {
		return hint.On(usage.Errorf("--original %s: the source is %s itself", o.Original,
			src.model.ID), hint.OriginalIsSource)
	}
	// what isn't published needn't be fetched twice: the conversion hashes these files, too
	if src.proof != nil && (o.Push || src.model.DecodedFrom == nil) {
		s.say("comparing %s that %s decodes to with %s, by SHA-256",
			human.Bytes(src.plan.SourceBytes()), src.model.ID, src.proven())
		if err := src.proof(ctx, src.plan); err != nil {
			return err
		}
	}
	switch {
	case o.Original != "":
		return s.proveOriginal(ctx, o, src, o.Original)
	case src.named == "" || !o.Push || !src.model.Local:
		return nil
	}
	err := s.proveOriginal(ctx, o, src, src.named)
	isOther := oneOf(hub.ErrNotFound, hub.ErrRevisionNotFound, hub.ErrGated, hub.ErrUnauthorized, hub.ErrForbidden)
	if wraps[*model.NotOriginalError](err) || isOther(err) {
		s.Log.Warn(fmt.Sprintf("the manifest names %s as the original, but the card doesn't: %v", src.named, err))
		s.say("%s", Unproved)
		return nil
	}
	return err
}

// proveOriginal compares a local source with a repo, org/name or org/name@revision.
func (s *session) proveOriginal(ctx context.Context, o *Options, src *opened, original string) error {
	repo, revision, _ := strings.Cut(original, "@")
	c, err := s.client("source")
	if err != nil {
		return err
	}
	if c.Offline() {
		s.Log.Warn("not compared with " + repo + ", because HF_HUB_OFFLINE is set, so the card doesn't name it")
		return nil
	}
	recipe, err := s.planOptions(ctx, o.Recipe)
	if err != nil {
		return err
	}
	s.say("comparing %s with %s, by SHA-256", human.Bytes(src.plan.SourceBytes()), repo)
	return src.model.Prove(ctx, src.source, src.plan, c, repo, revision, recipe, s.shares.Workers)
}

// carrying says which files of a folder stay there, and, if the result is published, each file that
// goes with it.
func carrying(c plan.Carried, published bool) (texts []string) {
	copied := copiedPaths(c)
	if n := len(copied); n > 0 && published {
		texts = append(texts, fmt.Sprintf("copying %s of the folder unchanged: %s",
			human.Count(n, "file"), strings.Join(copied, ", ")))
	}
	if n := len(c.Stay); n > 0 {
		stay, them := human.Count(n, "file")+" stay", "them"
		if n == 1 {
			stay, them = "1 file stays", "it"
		}
		texts = append(texts, fmt.Sprintf("%s in the folder, because no reader of the model opens %s: "+
			"%s (see plan; --include GLOB brings some)", stay, them,
			human.List(human.ByFolder(c.Stay, copied))))
	}
	return texts
}

// copiedPaths returns the files that a result gets unchanged.
func copiedPaths(c plan.Carried) []string {
	paths := []string{}
	for _, f := range c.AllCopied() {
		paths = append(paths, f.Path)
	}
	return paths
}
