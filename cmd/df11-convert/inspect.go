package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/df11-convert/df11-convert/internal/atomicfile"
	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/charts"
	"github.com/df11-convert/df11-convert/internal/describe"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
)

type inspectFlags struct {
	sourceFlags
	estimate estimateFlags
	html     string
}

func inspectCommand(u *ui) *cobra.Command {
	var f inspectFlags
	c := &cobra.Command{
		Use:   "inspect DF11|SOURCE",
		Short: "Measure exponents, code tables and bits per weight of a model",
		Long: `inspect looks into a DF11 model, or into a model that could become one. It prints types, compressed modules, entropy, and
bits per weight against the order-0 entropy bound; with --verbose also the number of symbols, the
longest code and the table rows of each module. For a source these are the figures that DF11 would reach. Samples of the weights
are read; --sample-bytes says how much, and a number as large as the model reads all.`,
		Example: `  df11-convert inspect ./Llama-3.1-8B-DF11
  df11-convert inspect meta-llama/Llama-3.1-8B --html report.html
  df11-convert inspect ./flux1-dev-DF11.safetensors --json`,
		Args: exactArgs(1, "DF11 or SOURCE"),
		RunE: func(c *cobra.Command, args []string) error { return runInspect(c.Context(), u, &f, args[0]) },
	}
	f.sourceFlags.register(c.Flags(), false)
	f.estimate.register(c.Flags())
	c.Flags().StringVar(&f.html, "html", "", "write a report with plots to this `file`, one page that needs nothing else")
	return c
}

func runInspect(ctx context.Context, u *ui, f *inspectFlags, spec string) error {
	if err := canWrite("--html", f.html, spec); err != nil {
		return err
	}
	r, err := f.inspect(ctx, u, spec)
	if err != nil {
		return err
	}
	r.Version = versionText()
	if f.html != "" {
		if err := atomicfile.WriteFile(f.html, charts.HTML(r)); err != nil {
			return err
		}
		u.say("report written to %s", f.html)
	}
	u.result(r, "", func(w io.Writer) { printInspection(w, r, u.verbose) })
	return nil
}

// inspect describes a source, a DF11 model, or, as far as it has headers, a source that cannot be converted.
func (f *inspectFlags) inspect(ctx context.Context, u *ui, spec string) (*describe.Report, error) {
	opt, err := f.planOptions()
	if err != nil {
		return nil, err
	}
	o, err := f.openSource(ctx, u, spec, opt)
	if err == nil {
		defer o.Close()
		err = o.makePlan(ctx, spec, opt)
	}
	refused, ok := errors.AsType[*plan.RefusedError](err)
	switch {
	case err == nil:
		r, err := describe.Source(ctx, o.source, o.model, o.plan, f.estimate.bytes(u, o))
		if err != nil {
			return nil, fmt.Errorf("inspect %s: %w", spec, err)
		}
		return r, nil
	case !ok:
		return nil, err
	case o == nil || refused.Reason == plan.ReasonAlreadyDF11:
		if r, failed := f.inspectDF11(ctx, u, spec); failed == nil && len(r.Units) > 0 {
			return r, nil
		} else if refused.Reason == plan.ReasonAlreadyDF11 {
			return r, failed
		}
	}
	if o == nil {
		return nil, err
	}
	return describe.Refused(o.model, err), nil
}

func (f *inspectFlags) inspectDF11(ctx context.Context, u *ui, spec string) (*describe.Report, error) {
	d, err := f.openDF11(ctx, u, spec, budget.Memory{})
	if err != nil {
		return nil, err
	}
	defer d.Close()
	n := int64(f.estimate.sample)
	if n < 0 {
		n = describe.DefaultSampleBytes(d)
	}
	r, err := describe.DF11(ctx, d, n)
	if err != nil {
		return nil, fmt.Errorf("inspect %s: %w", spec, err)
	}
	if model.Exists(spec) {
		r.Name = filepath.Base(filepath.Clean(spec))
	}
	return r, nil
}

// printInspection writes the figures for people, all of them or those that fit a narrow terminal.
func printInspection(w io.Writer, r *describe.Report, all bool) {
	t := newTable(w)
	t.row("model", "%s%s", r.Name, atCommit(r.Commit))
	t.row("files", "%d with %s", r.Files, human.Bytes(r.Bytes))
	for _, d := range r.DTypes {
		t.row("  "+d.Name, "%s, %s, %s", count(d.Tensors, "tensor"), count(d.Elems, "element"), human.Bytes(d.Bytes))
	}
	t.row("not convertible", "%s", r.Refused)
	for _, x := range r.Traps {
		t.row("would load wrongly", "%s: %s", x.Name, x.Detail)
	}
	if len(r.Units) > 0 {
		printFigures(t, r)
	}
	t.Flush()
	if len(r.Units) > 0 {
		printInspectedUnits(w, r, all)
	}
}

func printFigures(t *table, r *describe.Report) {
	would := choose(r.Kind == describe.KindSource, "would take ", "")
	t.row("modules", "%d with %s, %s read", len(r.Units), count(r.Weights, "weight"), choose(r.Exact, "all", human.Grouped(r.Read, ",")))
	t.row("size", "%s%s instead of %s: %.2f %%", would, human.Bytes(r.DF11Bytes), human.Bytes(r.BF16Bytes), percentage(r.DF11Bytes, r.BF16Bytes))
	if r.Read > 0 {
		t.row("exponents", "entropy %.4f bits, coded in %.4f bits", r.Entropy, r.CodeBits)
		t.row("weights", "%.4f bits each with everything; the order-0 entropy bound is %.4f, BF16 is 16", r.Bits, r.Bound)
	} else {
		t.row("exponents", "coded in %.4f bits; no weights were read, so the entropy is not known", r.CodeBits)
		t.row("weights", "%.4f bits each with everything; BF16 is 16", r.Bits)
	}
	for _, p := range r.Parts {
		t.row("  "+p.Name, "%s, %.2f %%", human.Bytes(p.Bytes), percentage(p.Bytes, r.DF11Bytes))
	}
}

// printInspectedUnits writes a line for each module, with the figures of its code table if all is asked for.
func printInspectedUnits(w io.Writer, r *describe.Report, all bool) {
	fmt.Fprintln(w)
	t := newTable(w)
	printf(t, "module\tweights\tentropy\tcode\tbits/weight\tbound")
	if all {
		printf(t, "\ttensors\tsymbols\tlongest\ttable rows")
	}
	fmt.Fprintln(t)
	for _, u := range r.Units {
		if u.Reason != "" {
			printf(t, "%s\t%s\tstays BF16: it %s\n", u.Path, human.Grouped(u.Weights, ","), metadata.ReasonText(u.Reason))
			continue
		}
		printf(t, "%s\t%s\t%.4f\t%.4f\t%.4f\t%.4f", u.Path, human.Grouped(u.Weights, ","), u.Entropy, u.CodeBits, u.Bits, u.Bound)
		if all {
			printf(t, "\t%d\t%d\t%s\t%d", u.Tensors, len(u.Codes), count(u.Longest, "bit"), u.LUTs)
		}
		fmt.Fprintln(t)
	}
	t.Flush()
}
