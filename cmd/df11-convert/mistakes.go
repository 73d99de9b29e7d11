package main

import (
	"errors"
	"fmt"
	"maps"
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
	if hint := elsewhere[word]; hint != "" {
		return hinted{usagef("unknown command %q", word), hint}
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

// The hints for flags of other tools.
const (
	useFolder  = "use -o DIR"
	useRepo    = "use --push, and --repo-id ORG/NAME if the name matters"
	useSource  = "write the model's name without a flag: df11-convert ORG/NAME"
	useWorkers = "use --workers N"
)

// elsewhere has hints for flags and commands of other tools.
var elsewhere = map[string]string{
	"token":       "set HF_TOKEN, or log in with hf auth login: a flag's value is visible to other users",
	"login":       "log in with: hf auth login",
	"dry-run":     "use the command plan: df11-convert plan SOURCE",
	"version":     "print the version with: df11-convert --version",
	"output":      useFolder,
	"outdir":      useFolder,
	"output-dir":  useFolder,
	"out-dir":     useFolder,
	"out":         useFolder,
	"local-dir":   useFolder,
	"cache-dir":   "use --work-dir DIR for temporary files, and HF_HOME for the cache of hf",
	"upload-repo": useRepo,
	"hub-repo":    useRepo,
	"repo-name":   useRepo,
	"upload":      "use --push",
	"publish":     "use --push",
	"hf-path":     useSource,
	"model":       useSource,
	"source":      useSource,
	"overwrite":   "use --force",
	"device":      "use --gpu auto, require, or off",
	"threads":     useWorkers,
	"jobs":        useWorkers,
}

// flagHint suggests what to write instead of an unknown flag; "" if nothing is close.
func flagHint(c *cobra.Command, name string) string {
	hints := map[string]string{}
	for _, other := range slices.Backward(c.Root().Commands()) {
		other.Flags().VisitAll(func(f *pflag.Flag) {
			hints[f.Name] = fmt.Sprintf("--%s is a flag of: df11-convert %s", f.Name, other.Name())
		})
	}
	maps.Copy(hints, elsewhere)
	if c.Flags().Lookup("slice") != nil {
		for _, member := range entryFlags {
			hints[member] = "write " + member + " into the list's entry"
		}
		maps.DeleteFunc(hints, func(_, hint string) bool { return hint == useFolder })
	}
	var own []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		hints[f.Name] = "did you mean --" + f.Name + "?"
		own = append(own, f.Name)
	})
	if hint := hints[name]; hint != "" {
		return hint
	}
	near := cobra.Command{SuggestionsMinimumDistance: c.Root().SuggestionsMinimumDistance}
	for _, known := range append(own, slices.Sorted(maps.Keys(hints))...) {
		near.AddCommand(&cobra.Command{Use: known, RunE: showHelp})
	}
	if meant := near.SuggestionsFor(name); len(meant) > 0 {
		return hints[meant[0]]
	}
	return ""
}
