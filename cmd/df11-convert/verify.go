package main

import (
	"cmp"
	"context"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/df11-convert/df11-convert/internal/progress"
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
	c := &cobra.Command{
		Use:   "verify DF11 [--against SOURCE]",
		Short: "Check that a DF11 model equals its original",
		Long: `verify checks a DF11 folder or Hub repo, whoever made it, against the model that it was made from. The last line that it
prints is the result. It ends with the first difference, and names it exactly.

Levels:
  structure  headers, tables, positions, completeness, and the sha256 of all files where it costs nothing to know
  proof      the original files rebuilt, and their sha256 compared with the published one
  full       every module decoded, and all 16 bits of every weight compared with the original

Only proof and full show that two models are equal. Without --level it is proof, which reads the original's headers alone; a proof that fails is followed by a comparison, which names the weight. It is full where nobody has published the original's sha256, such as for a folder, and where a part of it was left out. Without --against the original is taken from the manifest, or from base_model in the model card, and whether its commit is that of main is said. Files beside the weights that are not the original's are named; with --strict-files they end the program with 3.`,
		Example: `  df11-convert verify ./Llama-3.1-8B-DF11
  df11-convert verify ./out --against ./my-model
  df11-convert verify DFloat11/Qwen3-8B-DF11`,
		Args: exactArgs(1, "DF11"),
		RunE: func(c *cobra.Command, args []string) error {
			return runVerify(c.Context(), u, &f, args[0])
		},
	}
	p := c.Flags()
	f.readerFlags.register(p)
	p.StringVar(&f.level, "level", "",
		"how much is verified: `level` structure, proof or full (default the cheapest that shows equality)")
	p.StringVar(&f.workDir, "work-dir", "", "`directory` for temporary files")
	p.BoolVar(&f.strictFiles, "strict-files", false,
		"end with 3 as well if a file beside the weights is not the original's")
	f.gpu.register(p)
	return c
}

func runVerify(ctx context.Context, u *ui, f *verifyFlags, name string) error {
	if f.gpu.mode == string(verify.GPURequire) {
		if f.level = cmp.Or(f.level,
			string(pipeline.LevelFull)); f.level != string(pipeline.LevelFull) {
			return usagef("--gpu require needs --level full: no other level decodes on the GPU")
		}
	}
	report, err := verifyOne(ctx, u, f, name)
	if report == nil {
		return err
	}
	if err == nil && f.strictFiles && len(report.Beside) > 0 {
		err = besideError(report.Beside)
	}
	if hint := originalHint(report, err); hint != "" {
		err = hinted{err, hint}
	}
	err = u.advise(err)
	u.result(report, verdict(report, err), func(w io.Writer) { printVerifyReport(w, report, err) })
	return err
}

// verifyOne verifies one DF11 model as the flags say. If the model is wrong there are a report and
// an error.
func verifyOne(ctx context.Context, u *ui, f *verifyFlags,
	name string) (*pipeline.VerifyReport, error) {
	d, err := f.openLimited(ctx, u, name)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	src, err := f.openOriginal(ctx, u, d)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	pair := src.pair(d)
	opt := pipeline.PairOptions{
		Pair: pair, Level: cmp.Or(pipeline.Level(f.level), pipeline.Cheapest(pair)),
		Locate: f.level == "", Chosen: f.against == "", Workers: f.shares.Workers,
		Progress: new(progress.Counters),
		// no folder of a known name, which could be another user's
		WorkDir: cmp.Or(f.workDir, os.TempDir()),
	}
	if opt.Level == pipeline.LevelFull {
		if opt.GPU, err = f.gpu.open(u, &f.shares); err != nil {
			return nil, err
		}
		defer f.gpu.close()
		applyMemory(f.shares)
	}
	defer u.watch(opt.Progress)()
	return pipeline.Verify(ctx, opt)
}
