package main

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/target"
)

// batchResult is how one model ended.
type batchResult struct {
	Source string      `json:"source"`
	OK     bool        `json:"ok"`
	Exit   int         `json:"exit_code"`
	Error  *failure    `json:"error,omitempty"`
	Report *conversion `json:"report,omitempty"`
	// Skipped is what is published of a model that was not converted, since it is current.
	Skipped *publication `json:"skipped,omitempty"`
}

// batchReport is how a batch ended.
type batchReport struct {
	Done    int           `json:"done"`
	Skipped int           `json:"skipped"`
	Failed  int           `json:"failed"`
	Models  []batchResult `json:"models"`
}

func batchCommand(u *ui) *cobra.Command {
	var f convertFlags
	c := &cobra.Command{
		Use:   "batch LIST",
		Short: "Convert many models, one after the other, with one report",
		Long: `batch reads a list of models and converts each as the main command would. A model that fails does not stop the others, and
with --push one whose published result is current is skipped. The exit code is 0 if all are done, else that
of the first failure.

LIST is YAML (models: a list of entries with source and, if wanted, revision, repo-id, output, base-model, layout,
pattern-dict or like, private, and refresh: commit or never). docs/models.schema.json is its JSON schema.`,
		Example: `  df11-convert batch models.yaml --push
  df11-convert batch models.yaml --push --json > report.json`,
		Args: exactArgs(1, "LIST"),
		RunE: func(c *cobra.Command, args []string) error {
			return runBatch(c.Context(), u, &f, args[0])
		},
	}
	f.register(c.Flags())
	return c
}

func runBatch(ctx context.Context, u *ui, f *convertFlags, list string) error {
	ctx, done := f.limitTime(ctx)
	defer done()
	models, err := readList(list, f)
	if err != nil {
		return err
	}
	f.clients = map[string]*hub.Client{} // shared by all models
	found := batchReport{Models: []batchResult{}}
	var places []string // of what was made
	var first error
	for i, m := range models {
		u.began, u.waits.sum, u.kept = time.Now(), 0, false
		u.say("%d/%d %s", i+1, len(models), m.spec())
		flags := m.flags(*f)
		r, err := flags.convertListed(ctx, u, m)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		switch {
		case err != nil:
			found.Failed++
			u.complain(m.spec(), r.Error)
			if first == nil {
				first = toldError{err}
			}
		case r.Skipped != nil:
			found.Skipped++
		default:
			found.Done++
			places = append(places, where(r.Report.Report))
		}
		found.Models = append(found.Models, r)
	}
	u.result(found, strings.Join(places, "\n"), func(w io.Writer) {
		if !u.quiet { // else there are no places
			printBatch(w, found)
		}
	})
	return first
}

// convertListed converts a model of a list, unless it is published already, and says how that
// ended.
func (f *convertFlags) convertListed(ctx context.Context, u *ui,
	m listedModel) (batchResult, error) {
	r := batchResult{Source: m.spec()}
	if m.Refresh == refreshNever && f.target.push && f.target.out == "" && !f.target.force {
		if p, err := f.status(ctx, u, r.Source); err == nil && m.keeps(p) {
			r.OK, r.Skipped = true, &p
			return r, nil
		}
	}
	report, err := convertOne(ctx, u, f, r.Source)
	switch {
	case err != nil:
		r.Error = u.failure(err)
		r.Exit = r.Error.exit
		return r, err
	case report.Verified.UpToDate && report.Target.Repo != "":
		r.Skipped = &publication{Source: r.Source, Target: report.Target.Repo,
			State: target.Current}
	default:
		r.Report = report
	}
	r.OK = true
	return r, nil
}

func printBatch(w io.Writer, b batchReport) {
	t := newTable(w)
	for _, r := range b.Models {
		if p := r.Skipped; p != nil {
			printf(t, "%s\t%s\t%s\n", p.State, r.Source, p.Target)
			continue
		}
		if r.Report == nil {
			printf(t, "failed\t%s\t%s\n", r.Source, r.Error.Kind) // which was told in words
			continue
		}
		before, after := r.Report.Sizes.BF16, r.Report.Sizes.DF11
		printf(t, "done\t%s\t%s, %s → %s (%.1f %%)\n", r.Source, where(r.Report.Report),
			human.Bytes(before), human.Bytes(after), percentage(after, before))
	}
	t.Flush()
	printf(w, "%d done, %d published already, %d failed\n", b.Done, b.Skipped, b.Failed)
}
