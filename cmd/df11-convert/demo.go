package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/pipeline"
)

// The demo's repos, and the token of its only user.
const (
	demoSource = "demo/tiny-llama"
	demoTarget = "demo/tiny-llama-DF11"
	demoToken  = "hf_demo"
)

func demoCommand(u *ui) *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:   "demo",
		Short: "Show the whole job, with no network and no account",
		Long: `demo generates a small Llama-shaped model with weights distributed like trained ones, serves it on a Hub inside this
process, converts it over HTTP, proves it, publishes it back, and then proves the published repo against the original
as a stranger would: from the two repos alone.`,
		Args: exactArgs(0, ""),
		RunE: func(c *cobra.Command, _ []string) error { return runDemo(c.Context(), u, out) },
	}
	c.Flags().StringVarP(&out, "output", "o", "", "folder for the result (default a new temporary one)")
	return c
}

// demo is one run of the demo.
type demo struct {
	ui     *ui
	hub    *hubtest.Server
	client *hub.Client
	out    string
	start  time.Time
}

// DemoReport is the outcome of the demo.
type demoReport struct {
	*pipeline.Report
	Proof   *pipeline.VerifyReport `json:"proof"`
	Seconds float64                `json:"seconds"`
}

func runDemo(ctx context.Context, u *ui, out string) error {
	d := &demo{ui: u, out: out, start: time.Now(), hub: hubtest.New()}
	defer d.hub.Close()
	if err := d.prepare(); err != nil {
		return err
	}
	report, err := d.convert(ctx)
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	proof, err := d.prove(ctx)
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	if v := d.hub.Violations(); len(v) > 0 {
		return fmt.Errorf("demo: the hub saw a token where none belongs: %v", v)
	}
	r := &demoReport{report, proof, time.Since(d.start).Seconds()}
	return u.result(r, func(w io.Writer) { d.print(w, r) })
}

// prepare makes the folder, the model and the client.
func (d *demo) prepare() (err error) {
	if d.out == "" {
		if d.out, err = os.MkdirTemp("", "df11-demo-"); err != nil {
			return err
		}
	}
	model := hubtest.NewLlama(1, hubtest.ModelOptions{
		Layers: 6, Hidden: 512, Intermediate: 1408, Heads: 8, Vocab: 8192, ShardBytes: 12 << 20,
	})
	d.hub.AddModel(demoSource, model)
	d.ui.say("1. a Llama-shaped model, %s, on a hub inside this process: %s/%s", human.Bytes(model.Size()), d.hub.URL, demoSource)
	d.client, err = hub.New(hub.Options{Endpoint: d.hub.URL, Token: demoToken, TokenSource: "the demo", UserAgent: "df11-convert/" + versionText(), Log: d.ui.log()})
	return err
}

// convert runs the real pipeline against the hub.
func (d *demo) convert(ctx context.Context) (*pipeline.Report, error) {
	d.ui.say("2. df11-convert %s --push: fetch, encode, verify, upload", demoSource)
	src, model, err := pipeline.OpenHub(ctx, d.client, demoSource, "", plan.Options{})
	if err != nil {
		return nil, err
	}
	p, err := plan.New(model.Plan, plan.Options{})
	if err != nil {
		return nil, err
	}
	opt := pipeline.Options{
		Source: src, Model: model, Plan: p, OutDir: filepath.Join(d.out, "tiny-llama-DF11"),
		Push:    &pipeline.Push{Hub: d.client, Repo: demoTarget},
		Workers: runtime.GOMAXPROCS(0), Uploads: 2, Version: versionText(), Progress: new(pipeline.Progress), Log: d.ui.log(),
	}
	stop := d.ui.watch(opt.Progress)
	defer stop()
	return pipeline.Run(ctx, opt)
}

// prove reads both repos again, as somebody would who has never seen the conversion.
func (d *demo) prove(ctx context.Context) (*pipeline.VerifyReport, error) {
	d.ui.say("3. df11-convert verify %s: both repos are fetched again and every bit is compared", demoTarget)
	df11, err := pipeline.OpenDF11Hub(ctx, d.client, demoTarget, "")
	if err != nil {
		return nil, err
	}
	defer df11.Close()
	opt := plan.Options{PatternDict: df11.Dict}
	src, model, err := pipeline.OpenHub(ctx, d.client, demoSource, "", opt)
	if err != nil {
		return nil, err
	}
	p, err := plan.New(model.Plan, opt)
	if err != nil {
		return nil, err
	}
	work := filepath.Join(d.out, "work")
	defer func() { _ = os.Remove(work) }() // it is empty
	return pipeline.Verify(ctx, pipeline.VerifyOptions{
		DF11: df11, Source: src, Model: model, Plan: p, Level: pipeline.LevelFull, Workers: runtime.GOMAXPROCS(0), WorkDir: work,
	})
}

func (d *demo) print(w io.Writer, r *demoReport) {
	fmt.Fprintln(w)
	t := newTable(w)
	t.row("BF16", "%s", human.Bytes(r.BF16Bytes))
	t.row("DF11", "%s (%.1f %%)", human.Bytes(r.DF11Bytes), percent(r.DF11Bytes, r.BF16Bytes))
	t.row("units", "%d, with %d weights", r.Units, r.Weights)
	t.row("exponents", "%.3f bits each instead of 8", float64(r.Bits)/float64(max(1, r.Weights)))
	t.row("compared", "all 16 bits of %d weights, after encoding and again from the published repo: 0 differ", r.Proof.Weights) // else prove had failed
	t.row("time", "%.1f s", r.Seconds)
	t.row("result", "%s", r.Folder)
	t.Flush()
}
