package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/disk"
	"github.com/df11-convert/df11-convert/internal/human"
)

// planFlags are the flags of the command plan. Limits and part are the conversion's, on which its
// disk and memory depend.
type planFlags struct {
	sourceFlags
	limitFlags
	disk      sizeFlag
	parts     partFlags
	sample    sizeFlag // -1: a share of the model
	bandwidth sizeFlag
	gpu       sizeFlag
	writeDict string
}

// usualBandwidth is a gigabit line, for which times are given unless the user knows better.
const usualBandwidth = 125_000_000

func planCommand(u *ui) *cobra.Command {
	f := planFlags{sample: -1}
	c := &cobra.Command{
		Use:   "plan SOURCE",
		Short: "Show what a conversion would do, before any weight moves",
		Long: `plan reads headers, small files and a few samples of the weights. It tells whether the source can be converted, into
what, how big the result will be, what it takes to make it, what stays uncompressed and why, and which loaders
will load it.`,
		Example: `  df11-convert plan meta-llama/Llama-3.1-8B
  df11-convert plan ./my-model --json
  df11-convert plan Qwen/Qwen3-8B --gpu 24GB
  df11-convert plan Qwen/Qwen3-8B --bandwidth 30MB/s
  df11-convert plan org/new-arch --write-pattern-dict dict.json`,
		Args: exactArgs(1, "SOURCE"),
		RunE: func(c *cobra.Command, args []string) error {
			return runPlan(c.Context(), u, &f, args[0])
		},
	}
	p := c.Flags()
	f.sourceFlags.register(p, true)
	p.Var(&f.sample, "sample-bytes",
		"read at most this much of the weights for the estimate; 0 reads none (default 1 % or 8 MB, whichever is more, at most 64 MiB)")
	f.limitFlags.register(p)
	p.Lookup("memory").Usage = "memory budget of the conversion"
	p.Var(&f.disk, "disk", "disk budget of the conversion, e.g. 12GB")
	p.StringVar(&f.parts.which, "shard", "", "the `part` i/n for which disk is given")
	p.Var(&f.bandwidth, "bandwidth",
		"speed of the line for which times are given, e.g. 30MB/s (default 125 MB/s, a gigabit)")
	p.Var(&f.gpu, "gpu", "say whether the weights fit a GPU of this memory, e.g. 24GB")
	p.StringVar(&f.writeDict, "write-pattern-dict", "",
		"write the pattern dict of the plan to this `file`")
	return c
}

func runPlan(ctx context.Context, u *ui, f *planFlags, spec string) error {
	limits, err := f.conversion()
	if err != nil {
		return err
	}
	if err := canWrite("--write-pattern-dict", f.writeDict, spec); err != nil {
		return err
	}
	src, err := f.open(ctx, u, spec)
	if err != nil {
		return err
	}
	defer src.Close()
	if f.writeDict != "" {
		// in the form that --pattern-dict reads
		dict := append(src.plan.PatternDict.AppendJSON(nil, "", "  "), '\n')
		if err := disk.WriteFile(f.writeDict, dict); err != nil {
			return err
		}
	}
	size, err := budget.Sample(ctx, src.source, src.plan, f.sampleBytes(u, src))
	if err != nil {
		return fmt.Errorf("estimate %s: %w", src.model.ID, err)
	}
	needs, err := budget.FindNeeds(src.model, src.plan, size, limits)
	tooSmall := wraps[*budget.DiskError](err) // the plan says for what
	if err != nil && (!tooSmall) {
		return err
	}
	v := &forecast{src, size, needs, limits.Disk, cmp.Or(int64(f.bandwidth), usualBandwidth),
		int64(f.gpu)}
	u.result(v.document(), "", v.print)
	return err
}

// conversion is the budget that the conversion would have.
func (f *planFlags) conversion() (b budget.Budget, err error) {
	b.Disk = int64(f.disk)
	if b.Memory, err = f.divide(budget.ForConversion); err != nil {
		return b, err
	}
	b.Part, err = f.parts.part()
	return b, err
}

// sampleBytes is how much may be read of the planned source's weights, which it tells the user if
// the source is remote.
func (f *planFlags) sampleBytes(u *ui, o *opened) int64 {
	n := int64(f.sample)
	if n < 0 {
		n = budget.DefaultSampleBytes(o.model)
	}
	if n > 0 && !o.model.Local {
		u.say("sampling at most %s of the weights (--sample-bytes 0 turns this off)",
			human.Bytes(n))
	}
	return n
}
