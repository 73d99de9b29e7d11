package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/df11-convert/df11-convert/internal/plan"
)

func modelsCommand(u *ui) *cobra.Command {
	return &cobra.Command{
		Use:   "models [WORD...]",
		Short: "List the models whose units are known",
		Long: `models prints the catalogue: every model class whose units are known, how it is recognised, and where its pattern
dict comes from: a published release, the ComfyUI node, or the class's source code. "loads" says whether models of the
class were loaded in the reader of the layout: yes, no, or untested. With words, only entries that hold
all of them. Models that are not listed can often be converted as well: plan derives their units from the tensor names.`,
		Example: `  df11-convert models
  df11-convert models qwen diffusers
  df11-convert models --json`,
		RunE: func(_ *cobra.Command, words []string) error {
			models, err := plan.Models()
			if err != nil {
				return err
			}
			found := filterModels(models, words)
			u.result(map[string]any{"models": found}, "", func(w io.Writer) { printModels(w, found) })
			return nil
		},
	}
}

// filterModels keeps the entries whose line has every word. It never returns nil, so that --json prints an array.
func filterModels(models []plan.Model, words []string) []plan.Model {
	found := []plan.Model{}
	for _, m := range models {
		line := strings.ToLower(strings.Join(append(modelLine(m), m.DF11Repos...), " "))
		lacks := func(word string) bool { return !strings.Contains(line, strings.ToLower(word)) }
		if !slices.ContainsFunc(words, lacks) {
			found = append(found, m)
		}
	}
	return found
}

func printModels(w io.Writer, models []plan.Model) {
	t := newTable(w)
	fmt.Fprintln(t, "id\tlayout\tloads\tmatch\tprovenance")
	for _, m := range models {
		fmt.Fprintln(t, strings.Join(modelLine(m), "\t"))
	}
	t.Flush()
	printf(w, "\n%d entries\n", len(models))
}

func modelLine(m plan.Model) []string {
	provenance := m.Provenance
	if m.Refused != "" {
		provenance = "not convertible: " + m.Refused
	}
	return []string{m.ID, string(m.Layout), string(m.Loads), matchText(m), provenance}
}

// matchText says how a source is recognized as the entry's model.
func matchText(m plan.Model) string {
	if m.LikeOnly {
		return "only with --like " + m.ID
	}
	var parts []string
	add := func(name string, list []string) {
		if len(list) > 0 {
			parts = append(parts, name+" "+strings.Join(list, "|"))
		}
	}
	add("model_type", m.Match.ModelType)
	add("class", append(slices.Clone(m.Match.Architectures), m.Match.ClassName...))
	add("tensors", m.Match.Markers)
	add("without", m.Match.Absent)
	if m.Match.Tied != nil {
		parts = append(parts, fmt.Sprintf("tied %t", *m.Match.Tied))
	}
	return strings.Join(parts, ", ")
}
