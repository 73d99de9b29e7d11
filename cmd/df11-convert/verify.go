package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/df11-convert/df11-convert/pipeline"
	"github.com/df11-convert/df11-convert/verify"
)

type verifyFlags struct {
	readerFlags
	level, workDir string
	strictFiles    bool
	gpu            gpuFlags
}

func verifyCommand(u *ui) *cobra.Command {
	var f verifyFlags
	c := withArgument(&cobra.Command{
		Use:   "verify DF11 [--against SOURCE]",
		Short: "Check that a DF11 model equals its original",
		Long: `verify compares a DF11 folder or Hub repo with the model that it was made from.
It doesn't matter who made it. The last line is the result. verify stops at the
first difference and names it exactly.

Levels:
  structure  check headers, tables, positions, and completeness, and the SHA-256
             of files where it's free
  proof      rebuild the original files, and compare their SHA-256 with the
             published one
  full       decode every module, and compare all 16 bits of every weight with
             the original

Only proof and full show that two models are equal. The default is proof, which
reads only the original's headers. If a proof fails, verify compares the weights
and names the first difference. The default is full if no one published the
original's SHA-256, as for a folder, or if the conversion left out a part of the
original.

Without --against, the manifest names the original, or base_model in the model
card does. If neither does, or if the original isn't in the cache and the
network is off, verify compares every file's SHA-256 with the manifest, rebuilds
the original files as the manifest describes them, and ends with 1, because it
has compared no original. The report says whether main still
has the same weights. It names files next to the weights that differ from the
original's on main; with --strict-files, such files make the program exit with
6.`,
		Example: `  df11-convert verify ./Qwen3-8B-DF11
  df11-convert verify ./out --against ./my-model
  df11-convert verify DFloat11/Qwen3-8B-DF11`,
	}, func(ctx context.Context, arg string) error { return runVerify(ctx, u, &f, arg) })
	p := c.Flags()
	f.readerFlags.register(p)
	p.StringVar(&f.level, "level", "",
		"`level`: structure, proof, or full (default the cheapest that shows equality)")
	p.StringVar(&f.workDir, "work-dir", "", "`directory` for temporary files (default the system's)")
	p.BoolVar(&f.strictFiles, "strict-files", false,
		"exit with 6 if a file next to the weights differs")
	f.gpu.register(p)
	return c
}

func runVerify(ctx context.Context, u *ui, f *verifyFlags, name string) error {
	report, err := verifyOne(ctx, u, f, name)
	if report == nil {
		return err
	}
	v := judge(report, f.strictFiles)
	if err == nil {
		err = v.Verdicts.Files.err
	}
	if !errors.Is(err, pipeline.ErrNoOriginal) { // the report doesn't say why no one names it
		err = u.advise(err)
	}
	u.result(v, v.verdict(), v.print)
	return err
}

// verifyOne verifies one DF11 model. If the model is wrong, it returns both a report and an error.
func verifyOne(ctx context.Context, u *ui, f *verifyFlags,
	name string) (*pipeline.VerifyReport, error) {
	o := pipeline.VerifyOptions{Means: f.means(u), Recipe: f.recipe, Against: f.against,
		Level: pipeline.Level(f.level), WorkDir: f.workDir}
	o.GPU = verify.GPUMode(f.gpu.mode)
	return pipeline.Verify(ctx, name, o)
}
