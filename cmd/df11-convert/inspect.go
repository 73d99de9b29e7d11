package main

import (
	"context"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/df11-convert/df11-convert/internal/describe"
	"github.com/df11-convert/df11-convert/internal/disk"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/pipeline"
)

func inspectCommand(u *ui) *cobra.Command {
	var limits limitFlags
	var html string
	c := withArgument(&cobra.Command{
		Use:   "inspect DF11",
		Short: "Measure exponents and bits per weight of a DF11 model",
		Long: `inspect measures a DF11 model. It prints sizes, compressed modules, entropy, and
bits per weight next to the order-0 entropy bound, with --json or --html for
each module; --json adds their code tables. It samples the weights of large
models. It verifies nothing. To see what a BF16 model would become, use plan.`,
		Example: `  df11-convert inspect ./Qwen3-8B-DF11
  df11-convert inspect DFloat11/Qwen3-8B-DF11 --html report.html
  df11-convert inspect ./flux1-dev-DF11.safetensors --json`,
	}, func(ctx context.Context, arg string) error { return runInspect(ctx, u, &limits, arg, html) })
	c.Flags().StringVar(&html, "html", "",
		"write a report with a picture and tables to this `file`")
	limits.registerMemory(c.Flags())
	return c
}

func runInspect(ctx context.Context, u *ui, limits *limitFlags, name, html string) error {
	if err := checkPage(html); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Dir(html)); err != nil { // before a large model is read for nothing
		return err
	}
	r, err := pipeline.Inspect(ctx, name, pipeline.InspectOptions{
		Means: limits.set(new(sourceFlags).means(u)), Page: html})
	if err != nil {
		return err
	}
	if html != "" {
		if err := disk.WriteFile(html, r.Page, r.PageMode); err != nil {
			return err
		}
		u.say("report written to %s", html)
	}
	u.result(r, sprintf("%s %.1f%%", r.Name, human.Percentage(r.DF11Bytes, r.BF16Bytes)),
		func(w io.Writer) { printInspection(w, r) })
	return nil
}

// printInspection writes a report for people.
func printInspection(w io.Writer, r *pipeline.Inspection) {
	t := newTable(w)
	t.row("model", "%s%s", r.Name, atCommit(r.Commit))
	t.row("files", "%d with %s", r.Files, human.Bytes(r.DF11Bytes))
	for _, x := range r.Traps {
		t.row("would load wrongly", "%s: %s", x.Name, x.Detail)
	}
	t.row("modules", "%d with %s, %s read", len(r.Units), human.Count(r.Weights, "weight"),
		choose(r.Read == r.Weights, "all", human.Grouped(r.Read)))
	t.row("size", "%s instead of %s: %.1f%%", human.Bytes(r.DF11Bytes), human.Bytes(r.BF16Bytes),
		human.Percentage(r.DF11Bytes, r.BF16Bytes))
	t.row("exponents", "entropy %.4f bits, coded in %.4f bits", r.Entropy, r.CodeBits)
	t.row("weights",
		"%.4f bits each with everything; the order-0 entropy bound is %.4f, BF16 is 16", r.Bits,
		r.Bound)
	for _, p := range describe.Parts(r.Parts).List() {
		t.row("  "+p.Name, "%s, %.1f%%", human.Bytes(p.Bytes), human.Percentage(p.Bytes, r.DF11Bytes))
	}
	t.Flush()
}
