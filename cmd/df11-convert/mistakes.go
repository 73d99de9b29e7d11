package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/df11-convert/df11-convert/internal/model"
)

// wrongCommand returns the error for a first word that can't be a source, and nil if it may be one.
func wrongCommand(root *cobra.Command, word string) error {
	if strings.ContainsAny(word, `/\`) || model.Exists(word) {
		return nil
	}
	if meant := root.SuggestionsFor(word); len(meant) > 0 {
		return hinted{usagef("unknown command %q", word), "did you mean: df11-convert " + meant[0]}
	}
	return hinted{usagef("%q isn't a command, a file or folder, or a Hub id such as org/name",
		word), "list the commands with: df11-convert --help"}
}

// wrongFlag explains an error in the flags.
func wrongFlag(c *cobra.Command, err error) error {
	if wrong, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		f, why := wrong.GetFlag(), wrong.Unwrap()
		if wraps[*strconv.NumError](why) {
			want := "a number in range"
			if f.Value.Type() == "bool" {
				want = "true or false"
			}
			why = fmt.Errorf("%q is not %s", wrong.GetValue(), want)
		}
		return usagef("--%s: %w", f.Name, why)
	}
	if missing, ok := errors.AsType[*pflag.NotExistError](err); ok {
		if hint := flagHint(c, missing.GetSpecifiedName()); hint != "" {
			return hinted{usageError{err}, hint}
		}
	}
	return usageError{err}
}

// elsewhere has hints for flags of other tools.
var elsewhere = map[string]string{
	"token":       "set HF_TOKEN, or log in with hf auth login: a flag's value is visible to other users",
	"dry-run":     "use the command plan: df11-convert plan SOURCE",
	"output":      "use -o DIR",
	"outdir":      "use -o DIR",
	"output-dir":  "use -o DIR",
	"out":         "use -o DIR",
	"upload-repo": "use --push, and --repo-id ORG/NAME if the name matters",
	"hub-repo":    "use --push, and --repo-id ORG/NAME if the name matters",
	"hf-path":     "write the model's name without a flag: df11-convert ORG/NAME",
	"model":       "write the model's name without a flag: df11-convert ORG/NAME",
	"upload":      "use --push",
	"threads":     "use --workers N",
	"jobs":        "use --workers N",
}

// flagHint suggests what to write instead of an unknown flag; "" if nothing is close.
func flagHint(c *cobra.Command, name string) string {
	if c.Flags().Lookup("slice") != nil && slices.Contains(entryFlags, name) {
		return "write " + name + " into the list's entry"
	}
	if hint := elsewhere[name]; hint != "" {
		return hint
	}
	near := cobra.Command{SuggestionsMinimumDistance: c.Root().SuggestionsMinimumDistance}
	c.Flags().VisitAll(func(f *pflag.Flag) {
		near.AddCommand(&cobra.Command{Use: f.Name, Hidden: f.Hidden, RunE: showHelp})
	})
	if meant := near.SuggestionsFor(name); len(meant) > 0 {
		return "did you mean --" + strings.Join(meant, " or --") + "?"
	}
	return ""
}
