//go:build !js

package main

import (
	"context"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/pipeline"
	"github.com/df11-convert/df11-convert/verify"
)

// The demo's repos and its user's token.
const (
	demoSource = "demo/tiny-llama"
	demoTarget = "demo/tiny-llama-DF11"
	demoToken  = "hf_demo"
)

func demoCommand(u *ui) *cobra.Command {
	var out string
	gpu := gpuFlags{mode: string(verify.GPUOff)}
	c := &cobra.Command{
		Use:   "demo",
		Short: "Show the whole job, with no network and no account",
		Long: `demo generates a small Llama-shaped model with weights distributed like trained
ones, and serves it on a Hub inside this process. It converts the model over
HTTP, verifies the result, and publishes it. Then it verifies the published repo
against the original as a stranger would, from the two repos alone.`,
		Args: exactArgs(0, ""),
		RunE: func(c *cobra.Command, _ []string) error {
			return runDemo(c.Context(), u, out, gpu)
		},
	}
	c.Flags().StringVarP(&out, "output", "o", "",
		"`folder` for the result (default a new temporary folder)")
	gpu.register(c.Flags())
	return c
}

// demoReport is the outcome of the demo.
type demoReport struct {
	*pipeline.Report
	Proof *verification `json:"proof"`
}

func runDemo(ctx context.Context, u *ui, out string, gpu gpuFlags) (err error) {
	if out == "" {
		if out, err = os.MkdirTemp("", "df11-demo-"); err != nil {
			return err
		}
		defer func() {
			if err != nil { // no other run would find what is in it
				_ = os.RemoveAll(out)
			}
		}()
		u.say("the result goes to %s: delete it when you're done", out)
	}
	server := hubtest.New()
	defer server.Close()
	model := hubtest.NewLlama(1, hubtest.ModelOptions{
		Layers: 6, Hidden: 512, Intermediate: 1408, Heads: 8, Vocab: 8192, ShardBytes: 12 << 20,
	})
	server.AddModel(demoSource, model)
	u.say("1. a Llama-shaped model, %s, on a Hub inside this process: %s/%s",
		human.Bytes(model.Size()), server.URL, demoSource)
	source := sourceFlags{instead: &hub.Options{
		Connection: hub.Connection{Endpoint: server.URL, Token: demoToken, TokenSource: "the demo"}}}
	r, err := demoJob(ctx, u, source, out, gpu)
	if err != nil {
		return err
	}
	u.result(r, r.Target.Folder, func(w io.Writer) { printDemo(w, r) })
	return nil
}

// demoJob runs a conversion. Then it reads both repos again, as a stranger would.
func demoJob(ctx context.Context, u *ui, source sourceFlags, out string,
	gpu gpuFlags) (*demoReport, error) {
	u.say("2. df11-convert %s --push: fetch, encode, verify, upload", demoSource)
	flags := convertFlags{sourceFlags: source, gpu: gpu,
		target: targetFlags{push: true, repoID: demoTarget, out: out}}
	made, err := convertOne(ctx, u, &flags, demoSource)
	if err != nil {
		return nil, err
	}
	u.say("3. df11-convert verify %s: fetch both repos again and compare every bit",
		demoTarget)
	check := verifyFlags{readerFlags: readerFlags{sourceFlags: source, against: demoSource},
		level: string(pipeline.LevelFull), gpu: gpu}
	report, err := verifyOne(ctx, u, &check, demoTarget)
	if err != nil {
		return nil, err
	}
	return &demoReport{made, judge(report, false)}, nil
}

func printDemo(w io.Writer, r *demoReport) {
	t := newTable(w)
	t.sizes(r.Sizes)
	t.row("verified",
		"all 16 bits of %s, after encoding and again from the published repo: 0 differ",
		human.Count(r.Proof.Weights, "weight"))
	t.row("time", "%.1f s", r.Made.Seconds)
	t.row("result", "%s", r.Target.Folder)
	// verify has nothing to compare with: its original was in this process only, and anyone may own
	// that name on the public Hub
	t.row("to check", "df11-convert decode %s -o %s", human.ShellWord(r.Target.Folder),
		human.ShellWord(r.Target.Folder+"-BF16"))
	t.Flush()
}
