package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/pipeline"
)

// planFlags are the flags of the command plan. Limits and part are those of the planned conversion.
type planFlags struct {
	sourceFlags
	limitFlags
	disk    sizeFlag
	parts   partFlags
	sample  sizeFlag // -1 is a share of the model
	card    cardFlag
	context countFlag
	batch   int
	// the repo that a local source is a copy of
	original string
}

func planCommand(u *ui) *cobra.Command {
	f := planFlags{sample: -1}
	c := withArgument(&cobra.Command{
		Use:   "plan SOURCE",
		Short: "Show what a conversion would do, before any weight moves",
		Long: `plan reads headers, small files, and a few samples of the weights. It shows
whether the source can be converted, how big the result will be, what making it
takes, what stays uncompressed and why, and which loaders can load it. With
--original it also hashes the files of a local source, and shows whether the
result could be public.`,
		Example: `  df11-convert plan Qwen/Qwen3-8B
  df11-convert plan ./my-model --json
  df11-convert plan Qwen/Qwen3-8B --vram 24GB
  df11-convert plan Qwen/Qwen3-8B --vram 4090 --context 32k --batch 4
  df11-convert plan org/new-arch --json | jq .pattern_dict > dict.json`,
	}, func(ctx context.Context, arg string) error { return runPlan(ctx, u, &f, arg) })
	p := c.Flags()
	f.sourceFlags.register(p)
	p.Var(&f.sample, "sample-bytes",
		"limit for reading weights; 0 reads none (default 1%, from 8 MB to 64 MiB)")
	registerOriginal(p, &f.original)
	f.limitFlags.register(p)
	p.Var(&f.disk, "disk", "disk budget of the conversion, e.g. 12GB (default all free space)")
	p.StringVar(&f.parts.which, "shard", "", "show the disk that `part` i/n needs")
	p.Var(&f.card, "vram", "show whether it fits this GPU: 24GB, or a card such as 4090")
	p.Var(&f.context, "context", "with --vram: tokens of context that must fit too, e.g. 32k (default 0)")
	p.IntVar(&f.batch, "batch", 1, "with --vram: sequences at once")
	return c
}

func runPlan(ctx context.Context, u *ui, f *planFlags, spec string) error {
	if f.card == 0 && (f.context > 0 || f.batch != 1) {
		return hint.On(usagef("--context and --batch say what must fit into --vram"),
			hint.NeedsCard)
	}
	if f.batch < 1 {
		return usagef("--batch %d: want at least 1 sequence", f.batch)
	}
	part, err := f.parts.part()
	if err != nil {
		return err
	}
	o := pipeline.PlanOptions{
		Options: pipeline.Options{Means: f.limitFlags.set(f.means(u)), Recipe: f.recipe, Original: f.original,
			Disk: int64(f.disk), Part: part.I, Parts: part.N},
		SampleBytes: int64(f.sample),
		On: pipeline.GPUQuestion{GiB: int64(f.card), Context: int64(f.context),
			Sequences: int64(f.batch)},
	}
	switch {
	case f.sample == 0:
		o.SampleBytes = -1
	case f.sample < 0:
		o.SampleBytes = 0
	}
	report, err := pipeline.Plan(ctx, spec, o)
	if report == nil {
		return err
	}
	v := (*forecast)(report)
	u.result(report, v.Gain, func(w io.Writer) { v.print(w, u.out.width()) })
	return err
}
