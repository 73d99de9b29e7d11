package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/df11-convert/df11-convert/internal/bench"
	"github.com/df11-convert/df11-convert/internal/human"
)

type benchFlags struct {
	size    sizeFlag
	workDir string
}

func benchCommand(u *ui) *cobra.Command {
	f := benchFlags{size: bench.DefaultSize}
	c := &cobra.Command{
		Use:   "bench",
		Short: "Print this machine's own figures",
		Long: `bench measures every step of a conversion on this machine, on generated weights that look trained, on one core and on
all. The steps take turns, and each figure is the median of several rounds. It takes less than a minute.

  memory_read      reads the weights
  naive            the plainest loop that splits weights and counts exponents: the measuring stick
  split_histogram  the same work by the loops that are used
  encode           codes the exponents, in memory
  unit             a whole unit in memory: count, make the tables, encode all six tensors
  verify           decodes, makes gaps and positions again, compares all 16 bits of every weight
  sha256           hashes, one message per core
  file             units from file to file, each hashed while the next is encoded; warm page cache, no fsync
  file_verify      the same, and every unit is verified from its stored bytes

Gw/s are thousand million weights per second, and GB/s the bytes of BF16 that they have. "x naive" compares with the
naive loop on as many cores in the same rounds: compare machines by the others, and versions of this program by it.`,
		Example: `  df11-convert bench
  df11-convert bench --size 1GiB --json >bench.json`,
		Args: exactArgs(0, ""),
		RunE: func(c *cobra.Command, _ []string) error { return runBench(c.Context(), u, &f) },
	}
	c.Flags().Var(&f.size, "size", "bytes of generated weights, 1MiB to 2GiB")
	c.Flags().StringVar(&f.workDir, "work-dir", "", "folder for the files that are written and removed again (default the system's)")
	return c
}

func runBench(ctx context.Context, u *ui, f *benchFlags) error {
	if f.size < bench.MinSize || f.size > bench.MaxSize {
		return usagef("--size %s is not between 1MiB and 2GiB", f.size.String())
	}
	report, err := bench.Run(ctx, bench.Options{Size: int64(f.size), Dir: f.workDir, Progress: func(round int) {
		if round > 0 {
			u.say("round %d", round)
			return
		}
		u.say("%s of weights are made, warming up", human.Bytes(int64(f.size)))
	}})
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	return u.result(report, func(w io.Writer) { printBench(w, report) })
}

func printBench(w io.Writer, r *bench.Report) {
	fmt.Fprintf(w, "%s; cores: %d; BF16 weights: %s; rounds: %d\n\n", r.CPU, r.Cores, human.Bytes(r.Size), r.Rounds)
	fmt.Fprintf(w, "%-15s  %6s  %5s  %7s  %7s  %7s\n", "stage", "path", "cores", "Gw/s", "GB/s", "x naive")
	for _, s := range r.Stages {
		fmt.Fprintf(w, "%-15s  %6s  %5d  %7.3f  %7.2f  %7.2f\n", s.Stage, s.Path, s.Cores, s.GWeightsPerS, s.GBPerS, s.RatioToNaive)
	}
}
