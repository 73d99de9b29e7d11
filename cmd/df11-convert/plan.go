package main

import (
	"cmp"
	"io"
	"os"
	"runtime"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/df11-convert/df11-convert/pipeline"
)

// budgetFlags are those of the main verb on which disk and memory depend.
type budgetFlags struct {
	memory, disk     sizeFlag
	workers, uploads int
	parts            shardFlags
}

func (f *budgetFlags) register(p *pflag.FlagSet) {
	p.Var(&f.memory, "memory", "memory budget of the conversion")
	p.Var(&f.disk, "disk", "disk budget of the conversion, e.g. 12GB")
	p.IntVar(&f.workers, "workers", 0, "threads for encoding and verifying (default: all cores)")
	p.IntVar(&f.uploads, "uploads", 2, "files uploaded at once")
	p.StringVar(&f.parts.shard, "shard", "", "the part i/n for which disk is given")
}

func (f *budgetFlags) budget(s *sourceFlags) (b pipeline.Budget, err error) {
	m, err := divideMemory(cmp.Or(f.memory, defaultMemory()), cmp.Or(f.workers, runtime.GOMAXPROCS(0)), f.uploads)
	if err != nil {
		return b, err
	}
	b = pipeline.Budget{Workers: m.workers, Uploads: f.uploads, Disk: int64(f.disk), SpoolMemory: m.spools, Memory: m.total}
	_, b.Buffers = transferBuffers(m.total, s.connections)
	b.Part, err = f.parts.part(os.Getenv)
	return b, err
}

func planCommand(u *ui) *cobra.Command {
	var f sourceFlags
	var e estimateFlags
	var b budgetFlags
	var writeDict string
	c := &cobra.Command{
		Use:   "plan SOURCE",
		Short: "Show what a conversion would do, before any weight moves",
		Long: `plan reads headers, small files and a few samples of the weights. It tells whether the source can be converted, into
what, how big the result will be, what it takes to make it, what passes through unchanged and why, and which readers
will load it.`,
		Example: `  df11-convert plan meta-llama/Llama-3.1-8B
  df11-convert plan ./my-model --json
  df11-convert plan Qwen/Qwen3-8B --bandwidth 30MB/s
  df11-convert plan org/new-arch --write-pattern-dict dict.json   # a dict to start from`,
		Args: exactArgs(1, "SOURCE"),
		RunE: func(c *cobra.Command, args []string) error {
			budget, err := b.budget(&f)
			if err != nil {
				return err
			}
			src, err := f.open(c.Context(), u, args[0])
			if err != nil {
				return err
			}
			defer src.Close()
			if writeDict != "" {
				if err := writePatternDict(writeDict, src.plan.PatternDict); err != nil {
					return err
				}
			}
			estimate, err := e.estimate(c.Context(), u, src)
			if err != nil {
				return err
			}
			v := newPlanView(src, estimate)
			if v.Estimate, err = e.view(src, estimate, budget); err != nil {
				return err
			}
			return u.result(v, func(w io.Writer) { v.print(w) })
		},
	}
	f.register(c.Flags())
	e.register(c.Flags())
	b.register(c.Flags())
	c.Flags().Var(&e.bandwidth, "bandwidth", "speed of the line for which times are given, e.g. 30MB/s (default 125 MB/s, a gigabit)")
	c.Flags().StringVar(&writeDict, "write-pattern-dict", "", "write the pattern dict of the plan to this file")
	return c
}
