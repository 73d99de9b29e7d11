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
		Use:   "models [ID | WORD...]",
		Short: "List the models whose modules are known",
		Long: `models prints the catalog: every model class whose compressed modules are known, with its layout and what loads it. With
words, only entries that hold all of them. With an id, all about that one: how it is recognized, whether a loader was
tried with models of the class, and where its pattern dict comes from: a published release, the ComfyUI node, or the class's
source code. Models that are not listed can often be converted as well: plan derives their modules from the tensor names.`,
		Example: `  df11-convert models
  df11-convert models qwen diffusers
  df11-convert models flux-dev-diffusers
  df11-convert models --json`,
		RunE: func(_ *cobra.Command, words []string) error {
			found := filterModels(plan.Models(), words)
			u.result(map[string]any{"models": found}, "", func(w io.Writer) { printModels(w, found) })
			return nil
		},
	}
}

// filterModels keeps the entry with the id, or those whose line has every word. It never returns nil, so that --json prints an array.
func filterModels(models []plan.Model, words []string) []plan.Model {
	if len(words) == 1 {
		if i := slices.IndexFunc(models, func(m plan.Model) bool { return m.ID == words[0] }); i >= 0 {
			return models[i : i+1]
		}
	}
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

// printModels prints a line for each entry, and all of the only one.
func printModels(w io.Writer, models []plan.Model) {
	if len(models) == 1 {
		printModel(w, models[0])
		return
	}
	if len(models) == 0 {
		fmt.Fprintln(w, "no entry has all of these words; df11-convert models lists every one")
		return
	}
	t := newTable(w)
	fmt.Fprintln(t, "id\tlayout\tloads by")
	for _, m := range models {
		by, _, _ := strings.Cut(m.Loader.Via, ";")
		if m.Refused != "" {
			by = "not convertible"
		}
		printf(t, "%s\t%s\t%s\n", m.ID, string(m.Layout), by)
	}
	t.Flush()
	printf(w, "\n%s; df11-convert models ID shows all of one\n", count(len(models), "entry"))
}

// printModel prints what is known of a model class.
func printModel(w io.Writer, m plan.Model) {
	t := newTable(w)
	t.row("id", "%s", m.ID)
	t.row("layout", "%s", string(m.Layout))
	t.row("recognized by", "%s", matchText(m))
	t.row("loads by", "%s %s", m.Loader.Via, m.Loader.Class)
	t.row("was loaded", "%s", string(m.Loads))
	t.row("transformers", "%s", m.Loader.Transformers)
	t.row("remark", "%s", m.Loader.Remark)
	t.row("not convertible", "%s", m.Refused)
	t.row("provenance", "%s", m.Provenance)
	t.row("published DF11", "%s", strings.Join(m.DF11Repos, ", "))
	t.row("examples", "%s", strings.Join(m.Examples, ", "))
	t.row("notes", "%s", m.Notes)
	t.Flush()
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
