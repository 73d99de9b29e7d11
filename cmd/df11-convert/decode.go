package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/pipeline"
)

type decodeFlags struct {
	sourceFlags
	readerFlags
	against, out string
}

func decodeCommand(u *ui) *cobra.Command {
	var f decodeFlags
	c := &cobra.Command{
		Use:   "decode DF11 -o DIR",
		Short: "Write the original safetensors files again",
		Long: `decode turns a DF11 folder or Hub repo back into the original weight files: the same bytes, the same sha256.

The original's headers and hashes come from the DF11 model's manifest; with --against they come from the original itself,
of which only headers are read. A file whose hash is not the original's never gets its name.`,
		Example: `  df11-convert decode ./Llama-3.1-8B-DF11 -o ./bf16
  df11-convert decode DFloat11/Qwen3-8B-DF11 --against Qwen/Qwen3-8B -o ./bf16`,
		Args: exactArgs(1, "DF11"),
		RunE: func(c *cobra.Command, args []string) error { return runDecode(c.Context(), u, &f, args[0]) },
	}
	p := c.Flags()
	p.StringVarP(&f.out, "output", "o", "", "folder for the decoded files")
	p.StringVar(&f.against, "against", "", "the original: Hub repo, folder or .safetensors file")
	p.IntVar(&f.workers, "workers", 0, "threads (default: all cores)")
	p.Var(&f.memory, "memory", memoryUsage)
	f.sourceFlags.register(p)
	return c
}

func runDecode(ctx context.Context, u *ui, f *decodeFlags, name string) error {
	if f.out == "" {
		return usagef("-o DIR is missing")
	}
	if err := f.readerFlags.apply(&f.sourceFlags); err != nil {
		return err
	}
	d, err := f.openDF11(ctx, u, name)
	if err != nil {
		return fmt.Errorf("open %s: %w", name, err)
	}
	defer d.Close()
	f.limitPieces(d)
	opt := pipeline.DecodeOptions{DF11: d, OutDir: f.out, Workers: f.workers, Progress: new(pipeline.Progress)}
	if f.against != "" || d.Manifest == nil {
		src, err := f.openOriginal(ctx, u, d, f.against)
		if err != nil {
			return err
		}
		defer src.Close()
		opt.Model, opt.Plan = src.model, src.plan
	}
	stop := u.watch(opt.Progress)
	report, err := pipeline.Decode(ctx, opt)
	stop()
	if as[*pipeline.LeftOutError](err) {
		return hinted{err, "verify --level full compares all that was kept with the original"}
	}
	if err != nil {
		return err
	}
	return u.result(report, func(w io.Writer) { printDecodeReport(w, report) })
}

// openOriginal opens what a DF11 model was made from, and plans it anew as the model shows that it was planned. An empty
// spec takes what the model names itself.
func (f *sourceFlags) openOriginal(ctx context.Context, u *ui, d *pipeline.DF11, spec string) (*opened, error) {
	if spec == "" {
		if spec = d.Original(); spec == "" {
			return nil, hinted{usagef("neither a manifest nor a card names the original of %s", d.Name), "name it with --against"}
		}
		u.say("the original is %s", spec)
	}
	opt, err := f.planOptions()
	if err != nil {
		return nil, err
	}
	var o opened
	for _, try := range d.OriginalOptions(opt) {
		opt = try
		if o.source, o.model, err = f.openSource(ctx, u, spec, opt); !as[*plan.RefusedError](err) {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", spec, err)
	}
	if o.plan, err = d.PlanOriginal(o.model.Plan, opt); err != nil {
		o.Close()
		return nil, fmt.Errorf("plan %s: %w", spec, err)
	}
	return &o, nil
}

func printDecodeReport(w io.Writer, r *pipeline.DecodeReport) {
	fmt.Fprintf(w, "%d files with %s written to %s\n", r.Files, human.Bytes(r.Bytes), r.Folder)
	if r.Consulted {
		fmt.Fprintln(w, "every sha256 equals the original's")
	} else {
		fmt.Fprintln(w, "every sha256 equals the one in the manifest; the original itself was not consulted")
	}
}
