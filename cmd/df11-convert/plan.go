package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/model"
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
}

func planCommand(u *ui) *cobra.Command {
	f := planFlags{sample: -1}
	c := withArgument(&cobra.Command{
		Use:   "plan SOURCE",
		Short: "Show what a conversion would do, before any weight moves",
		Long: `plan reads headers, small files, and a few samples of the weights. It shows
whether the source can be converted, how big the result will be, what making it
takes, what stays uncompressed and why, and which loaders can load it.`,
		Example: `  df11-convert plan Qwen/Qwen3-8B
  df11-convert plan ./my-model --json
  df11-convert plan Qwen/Qwen3-8B --vram 24GB
  df11-convert plan Qwen/Qwen3-8B --vram 4090 --context 32k --batch 4
  df11-convert plan org/new-arch --json | jq .pattern_dict > dict.json`,
	}, func(ctx context.Context, arg string) error { return runPlan(ctx, u, &f, arg) })
	p := c.Flags()
	f.sourceFlags.register(p, true)
	p.Var(&f.sample, "sample-bytes",
		"limit for reading weights; 0 reads none (default 1%, from 8 MB to 64 MiB)")
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
		return hinted{usagef("--context and --batch say what must fit into --vram"),
			"add --vram 24GB, or a card such as --vram 4090"}
	}
	limits, err := f.conversion()
	if err != nil {
		return err
	}
	f.shares = limits.Memory // plan itself keeps to the conversion's memory
	applyMemory(f.shares)
	src, err := f.open(ctx, u, spec)
	if err != nil {
		return err
	}
	defer src.Close()
	if err := f.planOfficial(ctx, src); err != nil {
		return err
	}
	most := int64(f.sample)
	if most < 0 {
		most = budget.DefaultSampleBytes(src.model)
	}
	size, err := budget.Sample(ctx, src.source, src.plan, most)
	if err != nil {
		return fmt.Errorf("estimate %s: %w", src.model.ID, err)
	}
	needs, err := budget.FindNeeds(src.model, src.plan, size, limits)
	tooSmall := wraps[*budget.DiskError](err) // the plan shows how much is missing
	if err != nil && !tooSmall {
		return err
	}
	if ctx.Err() != nil { // what follows is quick, unless there are very many tensors
		return context.Cause(ctx)
	}
	v := newForecast(src, size, needs,
		gpuQuestion{int64(f.card), int64(f.context), int64(max(1, f.batch))})
	v.Published = f.published(ctx, u, src.model)
	u.result(v, v.gain(), v.print)
	return err
}

// published lists the model's DF11 repos on the Hub, according to their cards. If it can't, it logs
// a warning and returns nil.
func (f *planFlags) published(ctx context.Context, u *ui, m *model.Model) []string {
	if m.Local {
		return nil
	}
	c, err := f.client(u, "source")
	var repos []string
	if err == nil {
		repos, err = c.Quantized(ctx, m.ID, "DF11")
	}
	if err != nil && !errors.Is(err, hub.ErrOffline) {
		u.log().Warn("can't look for DF11 repos of the model: " + brief(err))
	}
	return repos
}

// conversion returns the budget that the conversion would have.
func (f *planFlags) conversion() (b budget.Budget, err error) {
	b.Disk = int64(f.disk)
	if b.Memory, err = f.divide(budget.ForConversion); err != nil {
		return b, err
	}
	b.Part, err = f.parts.part()
	return b, err
}
