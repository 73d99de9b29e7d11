package main

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/terminal"
	"github.com/df11-convert/df11-convert/pipeline"
	"github.com/df11-convert/df11-convert/verify"
)

// version is set by the release build. In other builds, versionText reads the build info.
var version = ""

// versionText returns the program's version for people, manifests, and user agents.
func versionText() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && strings.HasPrefix(info.Main.Version, "v") {
		return strings.TrimPrefix(info.Main.Version, "v")
	}
	return "dev"
}

// convertName is the command that you can leave out.
const convertName = "convert"

// commandName returns the words of a command after the program's name.
func commandName(c *cobra.Command) string {
	if !c.HasParent() {
		return convertName
	}
	return strings.TrimPrefix(c.CommandPath(), c.Root().Name()+" ")
}

const rootLong = `df11-convert rewrites a BF16 model losslessly as DFloat11 (about 68% of the
size), checks every weight, and publishes the result on the Hugging Face Hub.`

const rootExample = `  df11-convert Qwen/Qwen3-8B             # writes ./Qwen3-8B-DF11
  df11-convert Qwen/Qwen3-8B --push      # publishes <you>/Qwen3-8B-DF11
  df11-convert plan Qwen/Qwen3-8B        # shows what would happen
  df11-convert verify ./Qwen3-8B-DF11    # compares it with the original
  df11-convert demo                      # does all of it, without an account`

const convertLong = `convert reads a BF16 model, rewrites it losslessly as DFloat11 (DF11, about 68%
of the size), verifies every weight, and with --push publishes the result as
<name>-DF11. You can leave out the word convert.

SOURCE is a Hub repo (org/name, org/name@revision, or its address), a folder, or
one .safetensors file. An existing path wins over a Hub id. Every output file
equals, byte for byte, what the official compressor writes. Before an output
file is published or counts as done, its stored bytes are decoded again and
compared with the source. If a run stops, the same command resumes it.`

const convertExample = `  df11-convert Qwen/Qwen3-8B --push
  df11-convert https://huggingface.co/Qwen/Qwen3-8B
  df11-convert ./my-model -o ./out --original me/my-model`

// packaging lists commands that only a build for packages has: see manual.go.
var packaging []func() *cobra.Command

// rootCommand builds the command tree. Its commands return errors, and only execute prints them.
func rootCommand(u *ui, args []string) *cobra.Command {
	cobra.EnableCommandSorting = false // help lists them in the order in which you meet them
	root := &cobra.Command{
		Use:                        "df11-convert SOURCE",
		Short:                      "Convert BF16 models to DFloat11, losslessly",
		Long:                       rootLong,
		Example:                    rootExample,
		SilenceErrors:              true,
		SilenceUsage:               true,
		SuggestionsMinimumDistance: 2,
		Version:                    versionText(),
		PersistentPreRunE: func(c *cobra.Command, _ []string) error {
			u.args, u.running = args, c
			if u.command = commandName(c); slices.Contains([]string{convertName, "batch", "decode"},
				u.command) {
				u.resume = resumeCommand(args)
			}
			return checkFlags(c.Flags())
		},
		RunE: showHelp,
	}
	root.SetOut(u.out)
	root.SetErr(u.err)
	root.SetFlagErrorFunc(wrongFlag)
	root.SetHelpFunc(func(c *cobra.Command, _ []string) {
		if source := c.Flags().Arg(0); c == root && source != "" && wrongCommand(root, source) == nil {
			c, _, _ = root.Find([]string{convertName}) // the word may be left out
			c.InitDefaultHelpFlag()
		}
		width, _ := size(u.err)
		var b strings.Builder
		writeHelp(&b, c, min(width, 120))
		fmt.Fprint(u.out, terminal.Fold(b.String(), u.out.width()))
	})
	u.register(root.PersistentFlags())
	addCommands(root, u)
	for _, command := range packaging {
		root.AddCommand(command())
	}
	checkBuiltins(root)
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		completeValues(root)
	}
	root.SetArgs(args)
	return root
}

// parseGlobal sets the global flags that follow a wrong flag, or that were taken for its value,
// because they choose the form of the error.
func parseGlobal(root *cobra.Command, args []string) {
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	all.AddFlagSet(root.PersistentFlags())
	all.Usage, all.ParseErrorsAllowlist.UnknownFlags = func() {}, true
	_ = all.Parse(args)
}

func showHelp(c *cobra.Command, _ []string) error { return c.Help() }

func convertCommand(u *ui) *cobra.Command {
	var f convertFlags
	c := &cobra.Command{
		Use:     convertName + " SOURCE",
		Short:   "Convert a model and, with --push, publish it",
		Long:    convertLong,
		Example: convertExample,
		Args: func(c *cobra.Command, args []string) error {
			switch {
			case len(args) == 0 && os.Getenv(eventRepo) != "":
				return nil
			case len(args) == 0 && !c.HasParent() && c.Flags().NFlag() == 0:
				return pflag.ErrHelp
			case len(args) > 0 && args[0] != "":
				if err := wrongCommand(c.Root(), args[0]); err != nil {
					return err
				}
			}
			return exactArgs(1, "SOURCE")(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return runEvent(c.Context(), u, &f)
			}
			return runConvert(c.Context(), u, &f, args[0])
		},
	}
	f.register(c.Flags())
	return c
}

// choices lists the values of flags that have a fixed set of them.
var choices = map[string][]string{
	"log-format": {logText, logJSON},
	"gpu":        {string(verify.GPUAuto), string(verify.GPURequire), string(verify.GPUOff)},
	"level":      transform(pipeline.Levels(), func(l pipeline.Level) string { return string(l) }),
}

// checkFlags refuses values that are wrong in every command.
func checkFlags(flags *pflag.FlagSet) (err error) {
	flags.Visit(func(f *pflag.Flag) {
		v, known := f.Value.String(), choices[f.Name]
		switch {
		case v == "" && f.Value.Type() == "string": // else an unset variable would mean the default
			err = usagef("--%s is empty; leave it out for the default", f.Name)
		case strings.HasPrefix(v, "-"): // a path can begin with ./-
			err = usagef("--%s needs a value that doesn't begin with -: %s", f.Name, v)
		case known != nil && !slices.Contains(known, v):
			err = usagef("--%s: %q is not one of %s", f.Name, v, strings.Join(known, ", "))
		}
	})
	return err
}

// resumeCommand returns the command line that continues a stopped run.
func resumeCommand(args []string) string {
	return "df11-convert " + strings.Join(transform(args, human.ShellWord), " ")
}

// finishCommand returns the command line that completes what those of all parts have published.
func finishCommand(args []string) string {
	var rest []string
	for i := 0; i < len(args); i++ {
		switch {
		case args[i] == "--shard":
			i++
		case !strings.HasPrefix(args[i], "--shard="):
			rest = append(rest, args[i])
		}
	}
	return resumeCommand(append(rest, "--finish"))
}

// withArgument makes c require one argument, which its usage names, and run on it.
func withArgument(c *cobra.Command, run func(ctx context.Context, arg string) error) *cobra.Command {
	c.Args = exactArgs(1, strings.Fields(c.Use)[1])
	c.RunE = func(c *cobra.Command, args []string) error { return run(c.Context(), args[0]) }
	return c
}

// exactArgs requires n arguments, and names the missing one what.
func exactArgs(n int, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) < n:
			return usagef("%s is missing", what)
		case slices.Contains(args, ""):
			return usagef("%s is empty", what)
		case len(args) > n:
			return usagef("unexpected argument %q", args[n])
		}
		return nil
	}
}
