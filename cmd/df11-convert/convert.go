package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/pflag"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/address"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/pipeline"
	"github.com/df11-convert/df11-convert/verify"
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
	listed    bool   // one of a list's models: on the Hub, and in a --work-dir that others share
	stopAfter time.Duration
}

func (f *convertFlags) register(p *pflag.FlagSet) {
	f.sourceFlags.register(p)
	f.target.register(p)
	f.limits.register(p)
	f.parts.register(p)
	f.gpu.register(p)
	p.Var(&f.disk, "disk", "limit for temporary files, besides a result in a folder, e.g. 12GB (default all free space)")
	p.StringVar(&f.workDir, "work-dir", "",
		"`directory` for temporary files; a tmpfs counts as memory (default the cache)")
	p.DurationVar(&f.stopAfter, "stop-after",
		0, "stop after this time, e.g. 5h20m; the same command resumes (default never)")
}

// publishCommand returns the command that publishes what this one has put into a folder. If the Hub
// takes no repo with the result's name, the command has a place for another name.
func (f *convertFlags) publishCommand(u *ui, r *pipeline.Report) string {
	command := u.resume
	if f.target.out == "" {
		command += " -o " + human.ShellWord(r.Target.Folder)
	}
	command += " --push"
	if !names.NamesRepo(r.Source.Name) {
		command += " --repo-id ORG/NAME"
	}
	return command
}

// runConvert converts one model and prints the report.
func runConvert(ctx context.Context, u *ui, f *convertFlags, spec string) error {
	ctx, done := f.limitTime(ctx)
	defer done()
	report, err := convertOne(ctx, u, f, spec)
	if err != nil && ctx.Err() != nil {
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
			check := checkCommand(report, spec)
			printf(w, "up to date: its manifest says that %s was verified when it was made%s%s\n", place,
				choose(check == "", "", "; to check it: "), check)
			return
		}
		printReport(w, report, f.publishCommand(u, report), checkCommand(report, spec),
			finishCommand(u.args))
	})
	return nil
}

// checkCommand returns the command that compares a result with its original. If the result doesn't
// name that, the command names the folder or file that was converted, as the user wrote it. A path
// that reads like org/name gets a ./ in front, because --against prefers the Hub. It's "" for a
// part, and if only a DF11 model is known, which verify takes for no original.
func checkCommand(r *pipeline.Report, spec string) string {
	command := "df11-convert verify " + human.ShellWord(spelled(r))
	switch {
	case r.Target.Part != "":
		return ""
	case r.Source.Commit != "" || r.Source.Original != "":
		return command
	case r.Decoded != "":
		return ""
	case address.OnHub(spec):
		spec = "./" + spec
	}
	return command + " --against " + human.ShellWord(spec)
}

// spelled names the target as verify takes it: the repo and its branch, if that's what this name
// means here, and the address otherwise.
func spelled(r *pipeline.Report) string {
	name := address.Address{Repo: r.Target.Repo, Revision: r.Target.Branch}.ID()
	if _, err := os.Lstat(name); r.Target.Repo == "" || err == nil {
		return where(r)
	}
	return name
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

// options turns flags into the options of a conversion.
func (f *convertFlags) options(u *ui) (pipeline.Options, error) {
	o := pipeline.Options{
		Means: f.limits.set(f.means(u)), Recipe: f.recipe, OnHub: f.listed,
		Disk: int64(f.disk), WorkDir: f.workDir, SharedWorkDir: f.listed, Finish: f.parts.finish,
	}
	o.GPU = verify.GPUMode(f.gpu.mode)
	if err := f.target.set(&o); err != nil {
		return o, err
	}
	part, err := f.parts.part()
	o.Part, o.Parts = part.I, part.N
	return o, err
}

// ready checks the flags and the token, without a request.
func (f *convertFlags) ready(u *ui) error {
	o, err := f.options(u)
	if err == nil {
		err = o.Check()
	}
	return err
}

// convertOne converts one source, unless its target is up to date.
func convertOne(ctx context.Context, u *ui, f *convertFlags, spec string) (*pipeline.Report, error) {
	o, err := f.options(u)
	if err != nil {
		return nil, err
	}
	return pipeline.Convert(ctx, spec, o)
}

// client returns the client of a side, "source" or "target".
func (f *convertFlags) client(u *ui, side string) (*hub.Client, error) {
	o, err := f.options(u)
	if err != nil {
		return nil, err
	}
	return o.Client(side)
}
