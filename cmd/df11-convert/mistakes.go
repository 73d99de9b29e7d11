package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/usage"
)

// wrongCommand returns the error for a first word that can't be a source, and nil if it may be one.
func wrongCommand(root *cobra.Command, word string) error {
	if strings.ContainsAny(word, `/\`) || model.Exists(word) {
		return nil
	}
	if similar := root.SuggestionsFor(word); len(similar) > 0 {
		return usage.Hinted(usagef("unknown command %q", word), "did you mean: df11-convert "+similar[0])
	}
	if hint := elsewhere[word]; hint != "" {
		return usage.Hinted(usagef("unknown command %q", word), hint)
	}
	return usage.Hinted(usagef("%q isn't a command, a file or folder, or a Hub id such as org/name",
		word), "list the commands with: df11-convert --help")
}

// wrongFlag explains an error in the flags.
func wrongFlag(c *cobra.Command, err error) error {
	if wrong, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return wrongValue(wrong)
	}
	if missing, ok := errors.AsType[*pflag.NotExistError](err); ok {
		if hint := flagHint(c, missing.GetSpecifiedName()); hint != "" {
			return usage.Hinted(usage.Of(err), hint)
		}
	}
	return usage.Of(err)
}

// wants says in plain words what a flag's value must be, by its type in pflag.
var wants = map[string]string{
	"bool":     "true or false",
	"int":      "a whole number",
	"duration": "a time such as 90m or 5h30m",
}

// wrongValue returns the error for a value that a flag can't take. The flags of our own types say
// themselves what they want.
func wrongValue(wrong *pflag.InvalidValueError) error {
	f := wrong.GetFlag()
	if want := wants[f.Value.Type()]; want != "" {
		return usagef("--%s: %q is not %s", f.Name, wrong.GetValue(), want)
	}
	return usagef("--%s: %q is %w", f.Name, wrong.GetValue(), wrong.Unwrap())
}

// useFolder is the hint for the names that other tools give to --output.
const useFolder = "convert and decode write into -o DIR"

// elsewhere has hints for flags and commands of other tools.
var elsewhere = map[string]string{
	"token":       "set HF_TOKEN, or log in with hf auth login: a flag's value is visible to other users",
	"login":       "log in with: hf auth login",
	"dry-run":     "use the command plan: df11-convert plan SOURCE",
	"version":     "print the version with: df11-convert --version",
	"output-dir":  useFolder,
	"local-dir":   useFolder,
	"cache-dir":   "use --work-dir DIR for temporary files, and HF_HOME for the cache of hf",
	"upload":      "use --push",
	"upload-repo": "use --push, and --repo-id ORG/NAME if the name matters",
	"model":       "write the model's name without a flag: df11-convert ORG/NAME",
	"overwrite":   "use --force",
	"base-model":  "use --original ORG/NAME if the folder is a copy of that repo; what it was trained from is base_model in its README.md",
	"device":      "use --gpu auto, require, or off",
	"threads":     "use --workers N",
}

// flagHint suggests what to write instead of an unknown flag; "" if nothing is close.
func flagHint(c *cobra.Command, name string) string {
	if c.Flags().Lookup("slice") != nil && slices.Contains(entryFlags, name) {
		return "write " + name + " into the list's entry"
	}
	if hint := elsewhere[name]; hint != "" {
		return hint
	}
	for _, other := range c.Root().Commands() {
		if other.Flags().Lookup(name) != nil {
			return fmt.Sprintf("--%s is a flag of: df11-convert %s", name, other.Name())
		}
	}
	near := cobra.Command{SuggestionsMinimumDistance: c.Root().SuggestionsMinimumDistance}
	c.Flags().VisitAll(func(f *pflag.Flag) {
		near.AddCommand(&cobra.Command{Use: f.Name, RunE: showHelp})
	})
	if similar := near.SuggestionsFor(name); len(similar) > 0 {
		return "did you mean --" + similar[0] + "?"
	}
	return ""
}
