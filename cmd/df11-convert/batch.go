package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/smallfile"
)

// batchModel is one entry of a list. The command line completes it.
type batchModel struct {
	Source    string `yaml:"source"`
	RepoID    string `yaml:"repo-id"`
	Output    string `yaml:"output"`
	BaseModel string `yaml:"base-model"`
	Layout    string `yaml:"layout"`
	Dict      string `yaml:"pattern-dict"`
	Private   *bool  `yaml:"private"`
}

// batchResult is how one model ended.
type batchResult struct {
	Source string      `json:"source"`
	OK     bool        `json:"ok"`
	Exit   int         `json:"exit_code"`
	Error  *failure    `json:"error,omitempty"`
	Report *conversion `json:"report,omitempty"`
}

// batchReport is how a batch ended.
type batchReport struct {
	Done   int           `json:"done"`
	Failed int           `json:"failed"`
	Models []batchResult `json:"models"`
}

func batchCommand(u *ui, args []string) *cobra.Command {
	var f convertFlags
	c := &cobra.Command{
		Use:   "batch LIST",
		Short: "Convert many models, one after the other, with one report",
		Long: `batch reads a list of models and converts each as the main command would. A model that fails does not stop the others.
The exit code is 0 if all are done, else that of the first failure.

LIST is YAML (models: a list of entries with source and, if wanted, repo-id, output, base-model, layout, pattern-dict,
private), or a .txt file with one source per line and an optional target after a space; # begins a comment.`,
		Example: `  df11-convert batch models.yaml --push
  df11-convert batch models.txt --push --json > report.json`,
		Args: exactArgs(1, "LIST"),
		RunE: func(c *cobra.Command, lists []string) error {
			u.resume = resumeCommand(c.Root().Name(), args)
			return runBatch(c.Context(), u, &f, lists[0])
		},
	}
	f.register(c.Flags())
	return c
}

func runBatch(ctx context.Context, u *ui, f *convertFlags, list string) error {
	models, err := readList(list)
	if err != nil {
		return err
	}
	f.clients = map[string]*hub.Client{} // shared by all models
	var results []batchResult
	var first error
	for i, m := range models {
		u.say("%d/%d %s", i+1, len(models), m.Source)
		flags := m.flags(*f)
		report, err := convertOne(ctx, u, &flags, m.Source)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		r := batchResult{Source: m.Source}
		if err != nil {
			hs := hints(err)
			r.Error, r.Exit = failureOf(err, hs), kindOf(err).code
			u.complain(fmt.Sprintf("%s: %v", m.Source, err), r.Exit, hs)
			first = cmp.Or(first, err)
		} else {
			made := conversionOf(report)
			r.OK, r.Report = true, &made
		}
		results = append(results, r)
	}
	found := batchReport{Models: results}
	var places []string
	for _, r := range results {
		if r.Report == nil {
			found.Failed++
			continue
		}
		found.Done++
		places = append(places, where(r.Report.Report))
	}
	u.result(found, strings.Join(places, "\n"), func(w io.Writer) { printBatch(w, found) })
	if first != nil {
		return fmt.Errorf("not all models are done; the first failure: %w", first)
	}
	return nil
}

// flags are the flags of the command line with the values of the entry.
func (m batchModel) flags(f convertFlags) convertFlags {
	f.target.repoID = cmp.Or(m.RepoID, f.target.repoID)
	f.target.out = cmp.Or(m.Output, f.target.out)
	f.target.baseModel = cmp.Or(m.BaseModel, f.target.baseModel)
	f.layout = cmp.Or(m.Layout, f.layout)
	f.patternDict = cmp.Or(m.Dict, f.patternDict)
	if m.Private != nil {
		f.target.private = *m.Private
	}
	return f
}

// maxList bounds a list of models, in bytes.
const maxList = 1 << 20

// readList reads a list of models.
func readList(file string) ([]batchModel, error) {
	b, err := smallfile.ReadInput(file, maxList)
	if err != nil {
		return nil, err
	}
	var models []batchModel
	if filepath.Ext(file) == ".txt" {
		models, err = textList(b)
	} else {
		models, err = yamlList(b)
	}
	if err != nil {
		return nil, usageError{fmt.Errorf("%s: %w", file, err)}
	}
	for i, m := range models {
		if m.Source == "" {
			return nil, usagef("%s: entry %d has no source", file, i+1)
		}
	}
	if len(models) == 0 {
		return nil, usagef("%s names no model", file)
	}
	return models, nil
}

func yamlList(b []byte) ([]batchModel, error) {
	var list struct {
		Models []batchModel `yaml:"models"`
	}
	d := yaml.NewDecoder(bytes.NewReader(b))
	d.KnownFields(true)
	if err := d.Decode(&list); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return list.Models, nil
}

func textList(b []byte) (models []batchModel, err error) {
	for i, line := range strings.Split(string(b), "\n") {
		text, _, _ := strings.Cut(line, "#")
		words := strings.Fields(text)
		switch len(words) {
		case 0:
			continue
		case 1:
			models = append(models, batchModel{Source: words[0]})
		case 2:
			models = append(models, batchModel{Source: words[0], RepoID: words[1]})
		default:
			return nil, fmt.Errorf("line %d has more than a source and a target", i+1)
		}
	}
	return models, nil
}

func printBatch(w io.Writer, b batchReport) {
	t := newTable(w)
	for _, r := range b.Models {
		if r.Report == nil {
			printf(t, "failed\t%s\t%s\n", r.Source, r.Error.Message)
			continue
		}
		before, after := r.Report.BF16Bytes, r.Report.DF11Bytes
		printf(t, "done\t%s\t%s → %s (%.1f %%)\t%s\n", r.Source, human.Bytes(before), human.Bytes(after), percent(after, before), where(r.Report.Report))
	}
	t.Flush()
	printf(w, "%d done, %d failed\n", b.Done, b.Failed)
}
