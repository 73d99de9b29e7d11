package main

import (
	"fmt"
	"io"
	"maps"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/df11-convert/df11-convert/internal/plan"
)

// The groups of flags, in the order in which help shows them.
const (
	groupMain        = "Flags"
	groupSource      = "Source"
	groupOutput      = "Output"
	groupPublish     = "Publish"
	groupResources   = "Resources"
	groupDistributed = "Distributed"
	groupGPU         = "GPU"
	groupAdvanced    = "Advanced"
	groupGlobal      = "Global"
)

var groups = []string{groupMain, groupSource, groupOutput, groupPublish, groupResources, groupDistributed, groupGPU, groupAdvanced, groupGlobal}

const groupKey = "group"

// group puts flags that are in no group yet into one: the named ones, or all.
func group(p *pflag.FlagSet, name string, only ...string) {
	put := func(f *pflag.Flag) {
		if f.Annotations == nil {
			f.Annotations = map[string][]string{groupKey: {name}}
		}
	}
	for _, n := range only {
		put(p.Lookup(n))
	}
	if len(only) == 0 {
		p.VisitAll(put)
	}
}

// groupOf is the group of a flag.
func groupOf(f *pflag.Flag) string {
	switch g := f.Annotations[groupKey]; {
	case len(g) == 1:
		return g[0]
	case f.Name == "help" || f.Name == "version": // cobra's own
		return groupGlobal
	}
	return groupMain
}

// writeHelp writes what a command does, examples, and its flags by group, in at most width columns.
func writeHelp(w io.Writer, c *cobra.Command, width int) {
	var b strings.Builder
	if c.Long != "" {
		fmt.Fprintf(&b, "%s\n\n", unwrap(c.Long))
	}
	fmt.Fprintf(&b, "Usage:\n  %s\n", c.UseLine())
	if c.HasExample() {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", c.Example)
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprint(&b, "\nCommands:\n")
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() || sub.Name() == "help" {
				fmt.Fprintf(&b, "  %-11s  %s\n", sub.Name(), sub.Short)
			}
		}
	}
	c.InheritedFlags() // adds them to those of the command
	for _, name := range groups {
		var set pflag.FlagSet
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if groupOf(f) == name {
				set.AddFlag(f)
			}
		})
		if set.HasFlags() {
			fmt.Fprintf(&b, "\n%s:\n%s", name, set.FlagUsagesWrapped(width))
		}
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\nUse \"%s COMMAND --help\" for the flags of a command.\nDocs: %s\n", c.Root().Name(), docsURL)
	}
	fmt.Fprint(w, fold(b.String(), width, 0))
}

// unwrap joins the lines of each paragraph. Lines that begin with a space stay as they are.
func unwrap(text string) string {
	var b strings.Builder
	inside := false // of a paragraph
	for line := range strings.SplitSeq(text, "\n") {
		prose := line != "" && line[0] != ' '
		switch {
		case b.Len() == 0:
		case prose && inside:
			b.WriteByte(' ')
		default:
			b.WriteByte('\n')
		}
		if inside = prose; prose {
			line = strings.Join(strings.Fields(line), " ")
		}
		b.WriteString(line)
	}
	return b.String()
}

const docsURL = "https://github.com/df11-convert/df11-convert/tree/main/docs"

// completeValues offers the values of flags to the shell.
func completeValues(c *cobra.Command) {
	values := maps.Clone(choices)
	values["layout"] = plan.LayoutNames() // which has other names, too
	for name, known := range values {
		if c.Flags().Lookup(name) != nil || c.PersistentFlags().Lookup(name) != nil {
			_ = c.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(known, cobra.ShellCompDirectiveNoFileComp))
		}
	}
	if c.Flags().Lookup("like") == nil {
		return
	}
	_ = c.RegisterFlagCompletionFunc("like", func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return transform(plan.Catalog(), func(e plan.Entry) cobra.Completion { return e.ID }), cobra.ShellCompDirectiveNoFileComp
	})
}
