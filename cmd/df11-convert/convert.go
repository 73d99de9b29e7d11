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

	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/progress"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/pipeline"
)

// convertFlags are the flags of a conversion.
type convertFlags struct {
	sourceFlags
	target    targetFlags
	limits    limitFlags
	disk      sizeFlag
	parts     partFlags
	gpu       gpuFlags
	workDir   string
	listed    bool // one of many models, which share workDir
	stopAfter time.Duration
}

func (f *convertFlags) register(p *pflag.FlagSet) {
	f.sourceFlags.register(p, true)
	f.target.register(p)
	f.limits.register(p)
	f.parts.register(p)
	f.gpu.register(p)
	p.Var(&f.disk, "disk", "maximum temporary disk space, e.g. 12GB (default: what is free)")
	p.StringVar(&f.workDir, "work-dir", "",
		"`directory` for temporary files (a tmpfs counts as memory)")
	p.DurationVar(&f.stopAfter, "stop-after",
		0, "stop as if interrupted after this time, e.g. 5h20m; the same command resumes")
}

// runConvert is the command convert.
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
	u.result(report, where(report.Report), func(w io.Writer) {
		if report.Verified.UpToDate {
			place := where(report.Report)
			if report.Target.Part != "" {
				printf(w, "up to date: %s has all files of this part; --finish verifies them\n",
					place)
				return
			}
			printf(w,
				"up to date: %s was verified when it was made, says its manifest; to check it: df11-convert verify %s\n", place, human.ShellWord(place))
			return
		}
		printReport(w, report, u.waits.sum)
	})
	return nil
}

// limitTime returns a context that --stop-after ends as a signal would, and the function that
// releases it.
func (f *convertFlags) limitTime(ctx context.Context) (context.Context, func()) {
	if f.stopAfter == 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, f.stopAfter,
		fmt.Errorf("%w: time is up (--stop-after %s)", errInterrupted, f.stopAfter))
}

// settle checks what the flags say of the target, and divides the memory.
func (f *convertFlags) settle() (err error) {
	if err = f.target.check(); err == nil {
		f.shares, err = f.limits.divide(budget.ForConversion)
	}
	applyMemory(f.shares)
	return err
}

// convertOne converts one source as the flags say.
func convertOne(ctx context.Context, u *ui, f *convertFlags, spec string) (*conversion, error) {
	if err := f.settle(); err != nil {
		return nil, err
	}
	src, err := f.open(ctx, u, spec)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	if err := f.shares.Check(src.model, src.plan); err != nil {
		return nil, err
	}
	u.say("about %s",
		src.plan.Gain(src.plan.SourceBytes(), spans.LikelyBytes(spans.Outputs(src.plan))))
	for _, w := range src.plan.Warnings {
		u.log().Warn(w)
	}
	if err := f.target.checkLineage(u, src.model); err != nil {
		return nil, err
	}
	opt, err := f.options(ctx, u, src)
	if err != nil {
		return nil, err
	}
	defer f.gpu.close()
	defer func() { u.kept = leavesWork(opt.Progress.Snapshot()) }()
	defer u.watch(opt.Progress)()
	report, err := pipeline.Run(ctx, opt)
	if err != nil {
		return nil, err
	}
	report.Made.Seconds = time.Since(u.began).Seconds() // with the plan
	return &conversion{report, src.plan.Gain(report.Sizes.BF16, report.Sizes.DF11)}, nil
}

// leavesWork reports whether a run has done work from which the next run continues.
func leavesWork(s progress.Snapshot) bool {
	return s.Fetched > 0 || s.Outputs > 0 || s.Phase != "" && s.Phase != "convert"
}

// options turns flags into the pipeline's options.
func (f *convertFlags) options(ctx context.Context, u *ui, src *opened) (pipeline.Options, error) {
	opt := pipeline.Options{
		Source: src.source, Model: src.model, Plan: src.plan,
		OutDir: f.target.out, WorkDir: f.workDir, Force: f.target.force,
		BaseModel: f.target.baseModel,
		Disk:      int64(f.disk),
		Version:   versionText(), Progress: new(progress.Counters), Log: u.log(),
	}
	if f.target.push {
		var err error
		if opt.Push, err = f.push(ctx, u, src); err != nil {
			return opt, err
		}
		if err := opt.Push.Hub.NeedToken(); err != nil {
			return opt, err
		}
	} else if opt.OutDir == "" {
		opt.OutDir = resultName(src.model)
		// a link that came with a source leads where its author wants
		if st, err := os.Lstat(opt.OutDir); err == nil && !st.IsDir() {
			return opt, &fs.PathError{Op: "open", Path: opt.OutDir,
				Err: errors.New("something else than a folder is there; -o names another one")}
		}
	}
	if err := f.parts.apply(&opt); err != nil {
		return opt, err
	}
	if opt.WorkDir == "" || f.listed {
		opt.WorkDir = jobDir(opt, src.plan.Digest())
	}
	var err error
	opt.GPU, err = f.gpu.open(u, &f.shares)
	opt.Memory = f.shares
	return opt, err
}

// resultName is the name of a folder or repo for the result.
func resultName(m *model.Model) string { return m.Name + "-DF11" }

// jobDir is a work folder of a job's own, in the one that is given, else in the user's cache. It is
// the same for the same job, so that a rerun finds the work of the run before, and another for
// every other job, the parts of one model included, so that they can run side by side.
func jobDir(opt pipeline.Options, digest string) string {
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
