package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/convert"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/progress"
	"github.com/df11-convert/df11-convert/internal/publish"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// convertFlags are the flags of a conversion, whether of one model or of a list.
type convertFlags struct {
	sourceFlags
	target    targetFlags
	limits    limitFlags
	disk      sizeFlag
	parts     partFlags
	gpu       gpuFlags
	workDir   string
	slice     string // --slice, of a list
	stopAfter time.Duration
}

func (f *convertFlags) register(p *pflag.FlagSet) {
	f.sourceFlags.register(p, true)
	f.target.register(p)
	f.limits.register(p)
	f.parts.register(p)
	f.gpu.register(p)
	p.Var(&f.disk, "disk", "limit for temporary disk space, e.g. 12GB (default all free space)")
	p.StringVar(&f.workDir, "work-dir", "",
		"`directory` for temporary files; a tmpfs counts as memory (default the cache)")
	p.DurationVar(&f.stopAfter, "stop-after",
		0, "stop after this time, e.g. 5h20m; the same command resumes (default never)")
}

// runConvert converts one model and prints the report.
func runConvert(ctx context.Context, u *ui, f *convertFlags, spec string) error {
	ctx, done := f.limitTime(ctx)
	defer done()
	report, err := convertOne(ctx, u, f, spec)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return err
	}
	u.result(report, where(report), func(w io.Writer) {
		if report.Verified.UpToDate {
			place := where(report)
			if report.Target.Part != "" {
				printf(w, "up to date: %s has all files of this part; --finish verifies them\n",
					place)
				return
			}
			printf(w, "up to date: its manifest says that %s was verified when it was made; "+
				"to check it: df11-convert verify %s\n", place, human.ShellWord(place))
			return
		}
		printReport(w, report)
	})
	return nil
}

// limitTime returns a context that --stop-after ends the way a signal would, and its cancel
// function.
func (f *convertFlags) limitTime(ctx context.Context) (context.Context, func()) {
	if f.stopAfter == 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, f.stopAfter,
		fmt.Errorf("%w: time is up (--stop-after %s)", errInterrupted, f.stopAfter))
}

// settle checks the flags of the target and divides the memory.
func (f *convertFlags) settle() (err error) {
	if err = f.target.check(); err == nil {
		f.shares, err = f.limits.divide(budget.ForConversion)
	}
	if f.clients == nil {
		f.clients = map[string]*hub.Client{}
	}
	applyMemory(f.shares)
	return err
}

// ready checks the flags and the token, without a request.
func (f *convertFlags) ready(u *ui) error {
	if err := f.settle(); err != nil {
		return err
	}
	if err := f.parts.check(f.target.push); err != nil || !f.target.push {
		return err
	}
	c, err := f.client(u, "target")
	if err != nil {
		return err
	}
	return c.NeedToken()
}

// convertOne converts one source, unless its target is up to date.
func convertOne(ctx context.Context, u *ui, f *convertFlags, spec string) (*convert.Report, error) {
	if err := f.ready(u); err != nil {
		return nil, err
	}
	if s := f.settled(ctx, u, spec); s != nil {
		return convert.SettledReport(s), nil
	}
	src, err := f.open(ctx, u, spec)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	if err := f.shares.Check(src.model, src.plan); err != nil {
		return nil, err
	}
	for _, w := range src.plan.Warnings {
		u.log().Warn(w)
	}
	if spans.NExactF32(src.plan) > 0 { // samples find most that BF16 can't hold, as in plan
		if _, err := budget.Sample(ctx, src.source, src.plan,
			budget.DefaultSampleBytes(src.model)); err != nil {
			return nil, err
		}
	}
	if src.plan.SourceBytes() > aliasesFirst {
		if _, err := budget.SampleAliases(ctx, src.source, src.plan, false); err != nil {
			return nil, err
		}
	}
	if text := staying(src.plan.Stay); text != "" {
		u.say("%s", text)
	}
	if err := f.prove(ctx, u, src); err != nil {
		return nil, err
	}
	opt, err := f.options(ctx, u, src)
	if err != nil {
		return nil, err
	}
	defer f.gpu.close()
	defer u.count(opt.Progress)
	if f.parts.which == "" { // the sizes of a part differ
		outputs, err := spans.Outputs(src.plan)
		if err != nil {
			return nil, err
		}
		u.say("%s", gain(src.plan, spans.LikelyBytes(outputs), false))
	}
	defer u.watch(opt.Progress)()
	report, err := convert.Run(ctx, opt)
	if err != nil {
		return nil, err
	}
	report.Note, report.Left = src.plan.Stays(), src.plan.Stay
	return report, nil
}

// aliasesFirst is the size of a source from which samples of its tied tensors are compared before
// anything else. A smaller one is converted as soon.
const aliasesFirst = 1 << 30

// count adds the bytes that a conversion moved, and the files that it finished.
func (u *ui) count(p *progress.Counters) {
	u.finished += p.Outputs.Load()
	u.files += p.OutputFiles.Load()
	u.read += p.Fetched.Load()
	u.published += p.Stages()[progress.Upload].Bytes
}

// options turns flags into the pipeline's options.
func (f *convertFlags) options(ctx context.Context, u *ui, src *opened) (convert.Options, error) {
	opt := convert.Options{
		Source: src.source, Model: src.model, Plan: src.plan,
		OutDir: f.target.out, WorkDir: f.workDir, Force: f.target.force,
		License: f.target.license,
		Disk:    int64(f.disk),
		Version: versionText(), Asked: src.asked, Log: u.log(),
		Means: f.means(),
	}
	if f.target.push {
		var err error
		if opt.Push, err = f.push(ctx, u, src.model.Name); err != nil {
			return opt, err
		}
		opt.Push.Decided = func(repo string, v publish.Visibility) { u.say("%s %s", repo, v) }
	} else if opt.OutDir == "" {
		opt.OutDir = resultName(src.model.Name)
		// A link may come with a source and lead anywhere.
		if st, err := os.Lstat(opt.OutDir); err == nil && !st.IsDir() {
			return opt, &fs.PathError{Op: "open", Path: opt.OutDir,
				Err: errors.New("it exists and isn't a folder; choose another one with -o")}
		}
	}
	if opt.OutDir != "" && !opt.Force {
		if err := checkFolder(opt.OutDir, src.model.Name); err != nil {
			return opt, err
		}
	}
	opt.Part, _ = f.parts.part() // ready has checked it
	opt.Finish = f.parts.finish
	if opt.WorkDir == "" || f.listed {
		opt.WorkDir = jobDir(opt, src.plan.Digest())
	}
	err := f.gpu.open(u, &f.shares, &opt.Means)
	opt.Memory = f.shares
	return opt, err
}

// resultName returns the default name of the result's folder or repo.
func resultName(model string) string { return model + "-DF11" }

// jobDir returns the work folder of one job, in --work-dir or in the user's cache. The same job
// always gets the same folder, so a rerun finds earlier work. Other jobs, such as other parts of
// the model, get other folders, so they can run at the same time.
func jobDir(opt convert.Options, digest string) string {
	in := opt.WorkDir
	if in == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			cache = filepath.Join(homeDir(), ".cache")
		}
		in = filepath.Join(cache, "df11-convert")
	}
	name := digest[:16]
	if opt.Push != nil {
		name = strings.ReplaceAll(opt.Push.Repo, "/", "--") + "-" + name
	}
	if !opt.Part.Whole() {
		name += "-" + opt.Part.String()
	}
	return filepath.Join(in, name)
}
