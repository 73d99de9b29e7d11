package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/pipeline"
)

// sourceFlags say how a source is read and planned.
type sourceFlags struct {
	tokenFile   string
	patternDict string
	layout      string
	like        string
	component   string
	weightFile  string
	vision      bool
	exactF32    bool
	cache       bool
	connections int
	limitRate   sizeFlag
	budget      int64 // of memory for the whole program, 0 for none; set by the verb
}

func (f *sourceFlags) register(p *pflag.FlagSet) {
	p.StringVar(&f.tokenFile, "source-token-file", "", "file with the token for the source, if it is not the target's")
	p.StringVar(&f.patternDict, "pattern-dict", "", "JSON file with the pattern dict, in place of the catalogue's")
	p.StringVar(&f.layout, "layout", "", "transformers, transformers-single, diffusers, diffusers-single or single (ComfyUI)")
	p.StringVar(&f.like, "like", "", "take the pattern dict of this catalogue entry or published DF11 repo")
	p.StringVar(&f.component, "component", "", "folder of a diffusers pipeline to convert (default transformer, else unet)")
	p.StringVar(&f.weightFile, "file", "", "the one .safetensors file of the repo to convert, where it holds several models")
	p.BoolVar(&f.vision, "vision", false, "compress the vision tower too, where the catalogue knows its units")
	p.BoolVar(&f.exactF32, "exact-f32", false, "take F32 weights that are exact BF16; the proof is part of the conversion")
	p.BoolVar(&f.cache, "cache", false, "keep the source's weight files in the shared cache")
	p.IntVar(&f.connections, "connections", 0, "transfers at once in each direction (default 8)")
	p.Var(&f.limitRate, "limit-rate", "bytes per second in each direction, e.g. 50MB")
}

func (f *sourceFlags) planOptions() (plan.Options, error) {
	layout, err := plan.ParseLayout(f.layout)
	if err != nil {
		return plan.Options{}, usageError{err}
	}
	opt := plan.Options{Like: f.like, Layout: layout, Component: f.component, WeightFile: f.weightFile, Vision: f.vision, ExactF32: f.exactF32}
	if f.patternDict == "" {
		return opt, nil
	}
	b, err := os.ReadFile(f.patternDict)
	if err != nil {
		return opt, fmt.Errorf("pattern dict: %w", err)
	}
	if opt.PatternDict, err = plan.ParsePatternDict(b); err != nil {
		return opt, fmt.Errorf("pattern dict %s: %w", f.patternDict, err)
	}
	return opt, nil
}

// opened is a source with its plan.
type opened struct {
	source pipeline.Source
	model  *pipeline.Model
	plan   *plan.Plan
}

func (o *opened) Close() error {
	if c, ok := o.source.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// open reads what the plan needs of a source and makes the plan.
func (f *sourceFlags) open(ctx context.Context, u *ui, spec string) (*opened, error) {
	opt, err := f.planOptions()
	if err != nil {
		return nil, err
	}
	return f.openWith(ctx, u, spec, opt)
}

func (f *sourceFlags) openWith(ctx context.Context, u *ui, spec string, opt plan.Options) (*opened, error) {
	var o opened
	var err error
	if o.source, o.model, err = f.openSource(ctx, u, spec, opt); err != nil {
		return nil, fmt.Errorf("source %s: %w", spec, err)
	}
	if o.plan, err = plan.New(o.model.Plan, opt); err != nil {
		o.Close()
		return nil, fmt.Errorf("plan %s: %w", spec, err)
	}
	return &o, nil
}

// openSource reads what a plan needs of a source.
func (f *sourceFlags) openSource(ctx context.Context, u *ui, spec string, opt plan.Options) (pipeline.Source, *pipeline.Model, error) {
	if pipeline.Exists(spec) {
		return pipeline.OpenLocal(ctx, spec, opt)
	}
	return f.openHub(ctx, u, spec, opt)
}

func (f *sourceFlags) openHub(ctx context.Context, u *ui, spec string, opt plan.Options) (pipeline.Source, *pipeline.Model, error) {
	repo, revision, _ := strings.Cut(spec, "@")
	if strings.Count(repo, "/") != 1 || strings.HasPrefix(repo, ".") || strings.HasPrefix(repo, "/") {
		return nil, nil, hinted{usagef("no such file or folder, and not a Hub id such as org/name"), "check the path"}
	}
	c, err := f.client(u, "source")
	if err != nil {
		return nil, nil, err
	}
	src, model, err := pipeline.OpenHub(ctx, c, repo, revision, opt)
	if err == nil && f.cache {
		src = pipeline.KeepWeights(src)
	}
	return src, model, err
}

// client makes a Hub client for the source or the target.
func (f *sourceFlags) client(u *ui, side string) (*hub.Client, error) {
	opt, err := f.hubOptions(u, side)
	if err != nil {
		return nil, err
	}
	return hub.New(opt)
}

// hubOptions are those of one side, from the environment as Python reads it.
func (f *sourceFlags) hubOptions(u *ui, side string) (hub.Options, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		home = os.TempDir()
	}
	env, err := hub.Environ(os.Getenv, home)
	opt := env.Options()
	if side == "source" && f.tokenFile != "" {
		if opt.Token, err = hub.ReadTokenFile(f.tokenFile); err == nil {
			opt.TokenSource = "file " + f.tokenFile
		}
	}
	if err != nil {
		return opt, err
	}
	opt.Side, opt.UserAgent, opt.Log = side, "df11-convert/"+versionText(), u.log()
	opt.Connections, opt.LimitRate = f.connections, int64(f.limitRate)
	opt.RangeBytes, opt.BufferBytes = transferBuffers(f.budget, f.connections)
	opt.OnWait, opt.Governor = u.noteWait, u.governor
	return opt, nil
}

// convertFlags are the flags of the main verb.
type convertFlags struct {
	sourceFlags
	out, repoID, revision, baseModel, workDir string
	push, private, public, createPR           bool
	force, strict                             bool
	workers, uploads                          int
	memory, disk                              sizeFlag
	shares                                    memoryShares // set by the verb
	gpu                                       gpuFlags
	parts                                     shardFlags
}

func (f *convertFlags) register(c *cobra.Command) {
	p := c.Flags()
	p.StringVarP(&f.out, "output", "o", "", "folder for the result (default ./<name>-DF11; with --push nothing is kept)")
	p.BoolVar(&f.push, "push", false, "publish the result on the Hub")
	p.StringVar(&f.repoID, "repo-id", "", "target repo, namespace/name (default <you>/<name>-DF11)")
	p.StringVar(&f.revision, "revision", "", "branch of the target to publish to (default main)")
	p.BoolVar(&f.private, "private", false, "make the target private, if it is created")
	p.BoolVar(&f.public, "public", false, "allow a public target for a private or gated source")
	p.BoolVar(&f.createPR, "create-pr", false, "open a pull request on the target instead of committing to it")
	p.StringVar(&f.baseModel, "base-model", "", "Hub repo that a local source came from, for the model card")
	p.BoolVar(&f.force, "force", false, "write into a target that holds other .safetensors files, and over those with the names of outputs")
	p.BoolVar(&f.strict, "strict", false, "fail if DF11 can't hold some unit, instead of leaving it in BF16")
	p.StringVar(&f.workDir, "work-dir", "", "folder for what is on its way (a tmpfs counts as memory)")
	p.IntVar(&f.workers, "workers", 0, "threads for encoding and verifying (default: all cores)")
	p.IntVar(&f.uploads, "uploads", 2, "files uploaded at once")
	p.Var(&f.memory, "memory", memoryUsage)
	p.Var(&f.disk, "disk", "disk budget for what is on its way, e.g. 12GB (default: what is free)")
	f.sourceFlags.register(p)
	f.gpu.register(p)
	f.parts.register(p)
}

func (f *convertFlags) check() error {
	switch {
	case f.private && f.public:
		return usagef("--private and --public exclude each other")
	case !f.push && (f.repoID != "" || f.createPR || f.private || f.public || f.revision != ""):
		return usagef("--repo-id, --revision, --private, --public and --create-pr need --push")
	case f.createPR && f.repoID == "":
		return usagef("--create-pr needs --repo-id")
	}
	if f.repoID != "" {
		if err := hub.ValidRepoID(fullRepoID("you", f.repoID)); err != nil {
			return usageError{fmt.Errorf("--repo-id: %w", err)}
		}
	}
	if f.baseModel != "" {
		if err := hub.ValidRepoID(f.baseModel); err != nil {
			return usageError{fmt.Errorf("--base-model: %w", err)}
		}
	}
	return nil
}

// runConvert is the main verb.
func runConvert(ctx context.Context, u *ui, f *convertFlags, spec string) error {
	report, err := convertOne(ctx, u, f, spec)
	if err != nil {
		return err
	}
	return u.result(report, func(w io.Writer) { printReport(w, report) })
}

// convertOne converts one source as the flags say.
func convertOne(ctx context.Context, u *ui, f *convertFlags, spec string) (*pipeline.Report, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	if f.workers == 0 {
		f.workers = runtime.GOMAXPROCS(0)
	}
	shares, err := divideMemory(cmp.Or(f.memory, defaultMemory()), f.workers, f.uploads)
	if err != nil {
		return nil, err
	}
	shares.apply()
	f.workers, f.budget, f.shares = shares.workers, shares.total, shares
	src, err := f.open(ctx, u, spec)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	for _, w := range src.plan.Warnings {
		u.say("warning: %s", w.Text)
	}
	opt, err := f.options(ctx, u, src)
	if err != nil {
		return nil, err
	}
	defer f.gpu.close()
	stop := u.watch(opt.Progress)
	report, err := pipeline.Run(ctx, opt)
	stop()
	u.kept = u.kept || leavesWork(opt.Progress.Snapshot())
	return report, err
}

// leavesWork tells whether a run has done anything that the next one goes on from.
func leavesWork(s pipeline.Snapshot) bool {
	return s.Fetched > 0 || s.Outputs > 0 || s.Phase != "" && s.Phase != "convert"
}

// options turns flags into the pipeline's options.
func (f *convertFlags) options(ctx context.Context, u *ui, src *opened) (pipeline.Options, error) {
	opt := pipeline.Options{
		Source: src.source, Model: src.model, Plan: src.plan,
		OutDir: f.out, WorkDir: f.workDir, Workers: f.workers, Uploads: f.uploads, Disk: int64(f.disk), PieceMemory: pieceMemory(f.budget),
		DropCache: exceedsCache(src.plan.SourceBytes()), Force: f.force, Strict: f.strict, BaseModel: f.baseModel, Version: versionText(),
		Progress: new(pipeline.Progress), Log: u.log(),
	}
	name := src.model.Name + "-DF11"
	if f.push {
		push, err := f.target(ctx, u, name)
		if err != nil {
			return opt, err
		}
		opt.Push = push
	} else if f.out == "" {
		opt.OutDir = name
	}
	if opt.WorkDir == "" {
		opt.WorkDir = defaultWorkDir(opt, src.plan.Digest())
	}
	if err := f.parts.apply(&opt); err != nil {
		return opt, err
	}
	var err error
	opt.GPU, err = f.gpu.open(u, f.shares.gpu)
	opt.SpoolMemory = f.shares.besideGPU(f.gpu.host()).spools
	return opt, err
}

// defaultWorkDir is the same for the same job, so that a rerun finds what is there.
func defaultWorkDir(opt pipeline.Options, digest string) string {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	name := digest[:16]
	if opt.Push != nil {
		name = strings.ReplaceAll(opt.Push.Repo, "/", "--") + "-" + name
	}
	return filepath.Join(cache, "df11-convert", name)
}

// maxRepoName is the Hub's limit on the last part of a repo id.
const maxRepoName = 96

// fullRepoID puts a namespace before a repo's name that has none.
func fullRepoID(namespace, name string) string {
	if strings.Contains(name, "/") {
		return name
	}
	return namespace + "/" + name
}

// targetFlags are those of the source that hold for the target as well. Each of the two gets the whole share for
// transfers: the source is read before the proof, what comes back from the target during it.
func (f *convertFlags) targetFlags() *sourceFlags {
	return &sourceFlags{connections: f.connections, limitRate: f.limitRate, budget: f.budget}
}

// target finds out where to publish: the given repo, or the user's own with the name.
func (f *convertFlags) target(ctx context.Context, u *ui, name string) (*pipeline.Push, error) {
	c, err := f.targetFlags().client(u, "target")
	if err != nil {
		return nil, err
	}
	me, err := c.WhoAmI(ctx)
	if err != nil {
		return nil, err
	}
	push := &pipeline.Push{Hub: c, Repo: f.repoID, Revision: f.revision, CreatePR: f.createPR, Public: f.public}
	if f.private || f.public {
		push.Private = &f.private
	}
	if push.Repo == "" {
		if len(name) > maxRepoName {
			name = strings.TrimRight(name[:maxRepoName-len("-DF11")], "-.") + "-DF11"
			u.say("the target's name was too long and is now %s", name)
		}
		push.Repo = name
	}
	push.Repo = fullRepoID(me.Name, push.Repo)
	if err := hub.ValidRepoID(push.Repo); err != nil {
		return nil, usageError{fmt.Errorf("--repo-id: %w", err)}
	}
	return push, nil
}
