package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/df11-convert/df11-convert/internal/model"
)

// otherCommands are what neighbors (hf, mlx_lm, llama.cpp, restic) call our commands.
var otherCommands = map[string]string{
	"upload": "convert SOURCE --push", "push": "convert SOURCE --push", "publish": "convert SOURCE --push",
	"compress": "convert", "quantize": "convert", "pack": "convert", "encode": "convert",
	"check": "verify", "validate": "verify", "test": "verify", "compare": "verify", "diff": "verify",
	"decompress": "decode", "restore": "decode", "unpack": "decode", "extract": "decode",
	"info": "inspect", "show": "inspect", "stats": "inspect", "estimate": "plan", "dry-run": "plan",
}

// otherFlags are what neighbors call our flags, with what to do instead.
var otherFlags = map[string]string{
	"dry-run":     "df11-convert plan SOURCE shows what a conversion would do",
	"upload-repo": "use --push --repo-id", "repo_id": "use --push --repo-id", "upload": "use --push", "upload-to-hub": "use --push",
	"hf-path": "give the source without a flag: df11-convert org/name", "model": "give the source without a flag: df11-convert org/name",
	"model-id": "give the source without a flag: df11-convert org/name", "repo-type": "only model repos can be converted",
	"token": "set HF_TOKEN, or log in with hf auth login, so that no token shows in a list of processes; a source of another account has --source-token-file",
	"out":   "use --output (-o)", "outfile": "use --output (-o)", "output-dir": "use --output (-o)", "out-dir": "use --output (-o)",
	"local-dir": "use --output (-o)", "mlx-path": "use --output (-o)", "save_path": "use --output (-o)",
	"threads": "use --workers", "jobs": "use --workers", "num-workers": "use --workers", "n-threads": "use --workers",
	"overwrite": "use --force", "yes": "nothing asks; --force overwrites", "ref": "a revision of the source follows its name: org/name@revision",
	"commit": "a revision of the source follows its name: org/name@revision", "no-cache": "nothing is written to the Hub's cache",
	"max-memory": "use --memory", "no-verify": "every conversion is verified; there is no switch",
	"no-color": "use --color never", "debug": "use --verbose (-v)", "silent": "use --quiet (-q)",
}

// wrongCommand explains a first word that is no command, no file and no Hub id; nil if it may be a source.
func wrongCommand(root *cobra.Command, word string) error {
	if strings.ContainsAny(word, `/\`) || model.Exists(word) {
		return nil
	}
	if meant := cmp.Or(otherCommands[word], nearest(word, each(root.Commands(), (*cobra.Command).Name))); meant != "" {
		return hinted{usagef("unknown command %q", word), "did you mean: df11-convert " + meant}
	}
	return hinted{usagef("%q is no command, no file or folder, and no Hub id such as org/name", word), "see df11-convert --help for the commands"}
}

// wrongFlag explains an error in the flags.
func wrongFlag(c *cobra.Command, err error) error {
	if wrong, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		f, why := wrong.GetFlag(), wrong.Unwrap()
		if as[*strconv.NumError](why) {
			why = fmt.Errorf("%q is %s", wrong.GetValue(), either(f.Value.Type() == "bool", "neither true nor false", "not a number that fits"))
		}
		return usagef("--%s: %w", f.Name, why)
	}
	missing, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return usageError{err}
	}
	name := missing.GetSpecifiedName()
	if hint := otherFlags[name]; hint != "" {
		return hinted{usageError{err}, hint}
	}
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if n := nearest(name, names); n != "" && missing.GetSpecifiedShortnames() == "" {
		return hinted{usageError{err}, "did you mean --" + n}
	}
	return usageError{err}
}

// nearest is the name that a word was probably meant to be: the one that fewest edits make of it, at most one for every
// three letters; "" if there is none.
func nearest(word string, names []string) string {
	best, least := "", len(word)/3+1
	for _, name := range names {
		if d := edits(strings.ToLower(word), name); d < least || d == least && best == "" {
			best, least = name, d
		}
	}
	return best
}

// edits is the number of letters to insert, remove, replace, or swap with their neighbor to make b of a.
func edits(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			replaced := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				replaced++
			}
			rows[i][j] = min(replaced, rows[i-1][j]+1, rows[i][j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}

// withCommand puts the command that people leave out before a source: all that does not name a command, or ask for help,
// is a conversion.
func withCommand(root *cobra.Command, args []string) []string {
	global := newFlagSet(root.PersistentFlags())
	global.SetInterspersed(false)
	version := global.Bool("version", false, "")
	err := global.Parse(args)
	commands := append(each(root.Commands(), (*cobra.Command).Name), cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd)
	switch {
	case as[*pflag.NotExistError](err): // a flag of the conversion
	case err != nil || *version || len(args) == 0 || slices.Contains(commands, global.Arg(0)):
		return args
	}
	return slices.Insert(slices.Clone(args), 0, convertName)
}
