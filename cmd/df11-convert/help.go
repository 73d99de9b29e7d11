package main

import (
	"cmp"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// group is a heading and the flags below it, in their order.
type group struct {
	title string
	flags []string
}

// groups lists the headings of flags in help.
var groups = []group{
	{"Flags", []string{"level", "strict-files", "vram", "context", "batch", "sample-bytes", "html", "badges",
		"install", "uninstall", "no-descriptions"}},
	{"Source", []string{"against", "file", "component", "layout", "like", "pattern-dict",
		"for", "exact-f32", "unfilled", "include"}},
	{"Output", []string{"output", "force", "original", "license"}},
	{"Publish", []string{"push", "repo-id", "revision", "private", "public"}},
	{"Resources",
		[]string{"workers", "memory", "disk", "work-dir", "limit-rate", "stop-after", "gpu"}},
	{"Distributed", []string{"slice", "shard", "finish"}},
	global,
}

var global = group{"Global", []string{"json", "log-format", "quiet", "verbose", "help", "version"}}

// few are the flags in the root's help: those that most conversions need, and those of all
// commands.
var few = []group{
	{"Conversion", []string{"output", "push", "repo-id", "private", "memory", "disk"}}, global,
}

// writeHelp writes what a command does, its examples, and its flags, in at most width columns if
// they are at least 80.
func writeHelp(w io.Writer, c *cobra.Command, width int) {
	fmt.Fprintf(w, "%s\n\nUsage:\n  %s\n", cmp.Or(c.Long, c.Short), c.UseLine())
	if c.HasExample() {
		fmt.Fprintf(w, "\nExamples:\n%s\n", c.Example)
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprint(w, "\nCommands:\n")
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() || sub.Name() == "help" {
				fmt.Fprintf(w, "  %-11s  %s\n", sub.Name(), sub.Short)
			}
		}
	}
	c.InheritedFlags() // adds them to those of the command
	if c.HasParent() {
		writeFlags(w, c.Flags(), groups, width)
		return
	}
	writeFlags(w, c.Flags(), few, width)
	fmt.Fprintf(w, "\n%s\nUse \"%s COMMAND --help\" for all flags of a command.\nDocs: %s\n",
		surroundings, c.Name(), "https://github.com/df11-convert/df11-convert/tree/main/docs")
}

// surroundings lists what matters to the program in addition to its flags. The root's help and its
// man page print it.
const surroundings = `Environment:
  HF_TOKEN                the token (default: what hf auth login stored)
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

// writeFlags writes flags by group.
func writeFlags(w io.Writer, flags *pflag.FlagSet, groups []group, width int) {
	for _, g := range groups {
		var set pflag.FlagSet
		set.SortFlags = false
		for _, name := range g.flags {
			if f := flags.Lookup(name); f != nil {
				set.AddFlag(f)
			}
		}
		if set.HasAvailableFlags() {
			fmt.Fprintf(w, "\n%s:\n%s", g.title, set.FlagUsagesWrapped(width))
		}
	}
}
