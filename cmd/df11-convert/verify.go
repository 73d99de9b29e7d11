package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/df11-convert/df11-convert/internal/progress"
	"github.com/df11-convert/df11-convert/internal/proof"
	"github.com/df11-convert/df11-convert/verify"
)

type verifyFlags struct {
	readerFlags
	level, workDir string
	chunks         int
	seed           uint64
	gpu            gpuFlags
}

func verifyCommand(u *ui) *cobra.Command {
	var f verifyFlags
	c := &cobra.Command{
		Use:   "verify DF11 [--against SOURCE]",
		Short: "Prove that a DF11 model equals its original",
		Long: `verify checks a DF11 folder or Hub repo, whoever made it, against the model that it was made from.

Levels:
  structure  headers, tables, positions, completeness, and the sha256 of all files where it costs nothing to know; no
             weights are read
  sample     and some chunks of every unit, decoded and compared (the seed is printed and can be given again); neither
             of these two shows that the models are equal
  proof      the original files are rebuilt from the DF11 model and their sha256 compared with the published one;
             needs only the original's headers, not its weights
  full       every unit is decoded and all 16 bits of every weight compared with the original (default)

Without --against the original is taken from the manifest, or from base_model in the model card.`,
		Example: `  df11-convert verify ./Llama-3.1-8B-DF11
  df11-convert verify ./out --against ./my-model
  df11-convert verify DFloat11/Qwen3-8B-DF11 --level proof`,
		Args: exactArgs(1, "DF11"),
		RunE: func(c *cobra.Command, args []string) error { return runVerify(c.Context(), u, &f, args[0]) },
	}
	p := c.Flags()
	f.readerFlags.register(p)
	p.StringVar(&f.level, "level", string(proof.LevelFull), "structure, sample, proof or full")
	p.StringVar(&f.workDir, "work-dir", "", "folder for the original's weights on their way")
	p.IntVar(&f.chunks, "chunks", 16, "chunks per unit at level sample")
	p.Uint64Var(&f.seed, "seed", 0, "seed of level sample (default: random)")
	f.gpu.register(p)
	return c
}

// check refuses flags before anything is opened.
func (f *verifyFlags) check() error {
	level, err := proof.ParseLevel(f.level)
	if err != nil {
		return usageError{fmt.Errorf("--level: %w", err)}
	}
	mode, err := verify.ParseGPUMode(f.gpu.mode)
	switch {
	case err != nil:
		return usageError{err}
	case mode == verify.GPURequire && level != proof.LevelFull:
		return usagef("--gpu require needs --level full: no other level decodes on the GPU")
	case f.chunks < 1:
		return usagef("--chunks %d: at least one", f.chunks)
	}
	return nil
}

func runVerify(ctx context.Context, u *ui, f *verifyFlags, name string) error {
	if err := f.check(); err != nil {
		return err
	}
	report, err := verifyOne(ctx, u, f, name)
	if err != nil {
		return err
	}
	u.result(report, verdict(report), func(w io.Writer) { printVerifyReport(w, report) })
	return nil
}

// verifyOne verifies one DF11 model as the flags say.
func verifyOne(ctx context.Context, u *ui, f *verifyFlags, name string) (*proof.Report, error) {
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
	opt := proof.Options{
		DF11: d, Source: src.source, Model: src.model, Plan: src.plan, Level: proof.Level(f.level), Workers: f.shares.workers,
		Seed: f.seed, Chunks: f.chunks, Progress: new(progress.Counters),
		WorkDir: cmp.Or(f.workDir, filepath.Join(os.TempDir(), "df11-convert")),
	}
	if opt.Level == proof.LevelFull {
		if opt.GPU, err = f.gpu.open(u, &f.shares); err != nil {
			return nil, err
		}
		defer f.gpu.close()
		f.shares.apply()
	}
	for opt.Seed == 0 {
		opt.Seed = rand.Uint64()
	}
	defer u.watch(opt.Progress)()
	return proof.Verify(ctx, opt)
}

// verdict is the outcome of a check in one line.
func verdict(r *proof.Report) string {
	against := r.Against
	if r.AgainstFile != "" {
		against += " (" + r.AgainstFile + ")"
	}
	return fmt.Sprintf("%s %s %s (level %s)", r.Model, either(r.Equal, "equals", "shows no fault against"), against, r.Level)
}

func printVerifyReport(w io.Writer, r *proof.Report) {
	fmt.Fprintln(w, verdict(r))
	units := fmt.Sprintf("%d units", r.Units)
	if r.Equal {
		units += fmt.Sprintf(" with %d weights decoded", r.Weights)
	}
	printf(w, "  %s, %d units in BF16, %d tensors copied\n", units, r.BF16, r.Tensors)
	switch r.Level {
	case proof.LevelFull:
		fmt.Fprintln(w, "  all 16 bits of every weight compared: 0 differ")
	case proof.LevelProof:
		printf(w, "  %d original files rebuilt: every sha256 is %s\n", r.Files, either(r.Published, "the published one", "the original's"))
	case proof.LevelSample:
		printf(w, "  up to %d chunks of each unit compared: 0 weights differ there (seed %d)\n", r.Chunks, r.Seed)
	case proof.LevelStructure:
		fmt.Fprintln(w, "  headers, tables, positions and completeness checked; no weight was compared")
	}
	if r.Listed > 0 {
		fmt.Fprintf(w, "  sha256 of %d of %d files compared with the manifest: they are as the converter left them\n", r.Hashed, r.Listed)
	}
	if !r.Equal {
		fmt.Fprintln(w, "  whether the model equals the original only the levels proof and full can tell")
	}
	if r.GPU != nil {
		printf(w, "  %d of %d units once more on the GPU: %s on %s\n", r.GPU.Units, r.Units, r.GPU.Kernel, strings.Join(r.GPU.Devices, ", "))
	}
	for _, x := range r.Warnings {
		printf(w, "  warning: %s\n", x)
	}
}
