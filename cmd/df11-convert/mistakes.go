package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/df11-convert/df11-convert/internal/model"
)

// wrongCommand explains a first word that is no command, no file and no Hub id; nil if it may be a
// source.
func wrongCommand(root *cobra.Command, word string) error {
	if strings.ContainsAny(word, `/\`) || model.Exists(word) {
		return nil
	}
	if meant := root.SuggestionsFor(word); len(meant) > 0 {
		return hinted{usagef("unknown command %q", word), "did you mean: df11-convert " + meant[0]}
	}
	return hinted{usagef("%q is no command, no file or folder, and no Hub id such as org/name",
		word), "see df11-convert --help for the commands"}
}

// wrongFlag explains an error in the flags.
func wrongFlag(_ *cobra.Command, err error) error {
	if wrong, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		f, why := wrong.GetFlag(), wrong.Unwrap()
		if wraps[*strconv.NumError](why) {
			why = fmt.Errorf("%q is %s", wrong.GetValue(), choose(f.Value.Type() == "bool",
				"neither true nor false", "not a number that fits"))
		}
		return usagef("--%s: %w", f.Name, why)
	}
	if missing, ok := errors.AsType[*pflag.NotExistError](err); ok &&
		missing.GetSpecifiedName() == "token" {
		return hinted{usageError{err},
			"set HF_TOKEN, or log in with hf auth login: a token in a flag shows in every list of processes"}
	}
	return usageError{err}
}
