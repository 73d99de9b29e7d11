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
	best, fewest := "", 3
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if d := distance(name, f.Name); !f.Hidden && d < fewest && d < len(name) {
			best, fewest = f.Name, d
		}
	})
	if best == "" {
		return ""
	}
	return "did you mean --" + best + "?"
}

// distance counts the letters to change, add, remove, or swap to turn a into b.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		for j := range rows[i] {
			switch {
			case i == 0 || j == 0:
				rows[i][j] = i + j
				continue
			case a[i-1] == b[j-1]:
				rows[i][j] = rows[i-1][j-1]
			default:
				rows[i][j] = 1 + min(rows[i-1][j-1], rows[i-1][j], rows[i][j-1])
			}
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], 1+rows[i-2][j-2])
			}
		}
	}
	return rows[len(a)][len(b)]
}
