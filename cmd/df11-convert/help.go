package main

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/fits"
	"github.com/df11-convert/df11-convert/internal/terminal"
)

// group is a heading and the flags below it, in their order.
type group struct {
	title string
	flags []string
}

// groups lists the headings of flags in help. Flags without a group come first.
var groups = []group{
	{"Source", []string{"against", "file", "component", "layout", "like", "pattern-dict",
		"exact-f32", "unfilled"}},
	{"Output", []string{"output", "force", "base-model"}},
	{"Publish", []string{"push", "repo-id", "revision", "private", "public"}},
	{"Resources",
		[]string{"workers", "memory", "disk", "work-dir", "limit-rate", "stop-after", "gpu"}},
	{"Distributed", []string{"slice", "shard", "finish"}},
	{"Global", []string{"json", "log-format", "quiet", "verbose", "help", "version"}},
}

// writeHelp writes what a command does, its examples, and its flags, in at most width columns.
func writeHelp(w io.Writer, c *cobra.Command, width int) {
	var b strings.Builder
	if c.Long != "" {
		fmt.Fprintf(&b, "%s\n\n", lineEnd.ReplaceAllString(c.Long, "$1 $2"))
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
	writeFlags(&b, c, width)
	if !c.HasParent() {
		fmt.Fprintf(&b, "\n%s\nUse \"%s COMMAND --help\" for all flags of a command.\nDocs: %s\n",
			surroundings, c.Name(), docsURL)
	}
	fmt.Fprint(w, terminal.Fold(b.String(), width, 0))
}

// surroundings lists what matters to the program in addition to its flags. The root's help and its
// man page print it.
const surroundings = `Environment:
  HF_TOKEN                the token (default: the token that hf auth login stored)
  HF_ENDPOINT             the Hub (default https://huggingface.co)
  DF11_PUSH_ENDPOINT      the Hub to publish on (default: HF_ENDPOINT)
  HF_HOME, HF_HUB_CACHE   where hf keeps its token and its cache, which we read
  HF_HUB_OFFLINE          1 works offline, from the cache only
  HTTPS_PROXY, NO_PROXY   the proxy, and hosts that need none
  NO_COLOR, CI            no colors; progress as lines in a log

Files:
  NAME-DF11/.df11-convert  the state that an unfinished run resumes from
  ~/.cache/df11-convert    the same for runs with --push

Exit status:
  0    done or verified
  1    error, or a check that could not run
  2    usage
  3    the DF11 model is damaged, or differs
  4    no access: token or terms
  5    not convertible
  6    files next to the weights differ: verify --strict-files
  130  interrupted
`

// writeFlags writes a command's flags by group.
func writeFlags(b *strings.Builder, c *cobra.Command, width int) {
	flags := inHelp(c)
	write := func(title string, set *pflag.FlagSet) {
		if set.HasFlags() {
			fmt.Fprintf(b, "\n%s:\n%s", title, set.FlagUsagesWrapped(width))
		}
	}
	var others pflag.FlagSet
	flags.VisitAll(func(f *pflag.Flag) {
		if !slices.ContainsFunc(groups, func(g group) bool { return slices.Contains(g.flags, f.Name) }) {
			others.AddFlag(f)
		}
	})
	write("Flags", &others)
	for _, g := range groups {
		var set pflag.FlagSet
		set.SortFlags = false
		for _, name := range g.flags {
			if f := flags.Lookup(name); f != nil {
				set.AddFlag(f)
			}
		}
		write(g.title, &set)
	}
}

// inHelp returns the flags that a command's help shows. The root's help shows only the flags that
// most conversions need.
func inHelp(c *cobra.Command) *pflag.FlagSet {
	c.InheritedFlags() // adds them to those of the command
	if c.HasParent() {
		return c.Flags()
	}
	few := pflag.NewFlagSet("", pflag.ContinueOnError)
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if c.PersistentFlags().Lookup(f.Name) != nil || slices.Contains([]string{"output", "push",
			"repo-id", "private", "memory", "disk", "help", "version"}, f.Name) {
			few.AddFlag(f)
		}
	})
	return few
}

// lineEnd matches a line end inside a paragraph. Lines that begin with a space keep theirs.
var lineEnd = regexp.MustCompile(`(\S)\n(\S)`)

const docsURL = "https://github.com/df11-convert/df11-convert/tree/main/docs"

// completions returns the values that the shell offers for flags, by the names of the flags.
var completions = map[string]func() []string{
	"layout": catalog.LayoutNames,
	"vram":   fits.Cards,
	"like": func() []string {
		return transform(catalog.All(), func(e *catalog.Entry) string { return e.ID })
	},
}

// completeValues offers the values of a command's flags to the shell, and describes the flags
// without the backticks that mark the values in help.
func completeValues(c *cobra.Command) {
	describe := func(f *pflag.Flag) {
		known := completions[f.Name]
		if values := choices[f.Name]; values != nil {
			known = func() []string { return values }
		}
		if known != nil && c.Flag(f.Name) == f {
			_ = c.RegisterFlagCompletionFunc(f.Name, func(*cobra.Command, []string,
				string) ([]cobra.Completion, cobra.ShellCompDirective) {
				return known(), cobra.ShellCompDirectiveNoFileComp
			})
		}
		f.Usage = strings.ReplaceAll(f.Usage, "`", "")
	}
	c.Flags().VisitAll(describe)
	c.PersistentFlags().VisitAll(describe)
}
