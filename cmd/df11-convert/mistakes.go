package main

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/usage"
)

// wrongCommand returns the error for a first word that can't be a source, and nil if it may be one.
func wrongCommand(root *cobra.Command, word string) error {
	if strings.ContainsAny(word, `/\`) || model.Exists(word) {
		return nil
	}
	if similar := root.SuggestionsFor(word); len(similar) > 0 {
		return hint.On(usagef("unknown command %q", word), hint.Similar.With("command", similar[0]))
	}
	if h, ok := hint.OtherTools[word]; ok {
		return hint.On(usagef("unknown command %q", word), h)
	}
	return hint.On(usagef("%q isn't a command, a file or folder, or a Hub id such as org/name",
		word), hint.Commands)
}

// checkBuiltins adds cobra's own commands, help and completion, and makes them refuse what they
// don't know. cobra prints some other help and succeeds:
// https://github.com/spf13/cobra/blob/v1.10.2/command.go#L1293
func checkBuiltins(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "help":
			c.Args = func(_ *cobra.Command, args []string) error { return unknownTopic(root, args) }
		case "completion":
			c.Args = func(_ *cobra.Command, args []string) error {
				return unknownTopic(root, append([]string{c.Name()}, args...))
			}
			c.RunE = showHelp
			for _, shell := range c.Commands() {
				shell.Args = exactArgs(0, "")
			}
		}
	}
}

// unknownTopic returns an error if no command has this name.
func unknownTopic(root *cobra.Command, name []string) error {
	c, rest, err := root.Find(name)
	if err != nil || len(rest) == 0 {
		return err
	}
	err = usagef("unknown command %q", strings.Join(name, " "))
	if similar := c.SuggestionsFor(rest[0]); len(similar) > 0 {
		under := strings.TrimPrefix(c.CommandPath()+" ", root.Name()+" ")
		return hint.On(err, hint.Similar.With("command", under+similar[0]+" --help"))
	}
	return hint.On(err, hint.Commands)
}

// wrongFlag explains an error in the flags.
func wrongFlag(c *cobra.Command, err error) error {
	if wrong, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return wrongValue(wrong)
	}
	if missing, ok := errors.AsType[*pflag.NotExistError](err); ok {
		if h := flagHint(c, missing.GetSpecifiedName()); h != (hint.Hint{}) {
			return hint.On(usage.Of(err), h)
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

// flagHint suggests what to write instead of an unknown flag, if anything is close.
func flagHint(c *cobra.Command, name string) hint.Hint {
	if c.Flags().Lookup("slice") != nil && slices.Contains(listMembers, name) {
		return hint.EntryFlag.With("flag", name)
	}
	if h, ok := hint.OtherTools[name]; ok && lacks(c, h.String()) == "" {
		return h
	}
	if other, f := otherWith(c, name); other != nil {
		return hint.OtherFlag.With("flag", f.Name, "command", other.Name())
	}
	near := cobra.Command{SuggestionsMinimumDistance: c.Root().SuggestionsMinimumDistance}
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && len(name) > 1 { // every letter is near to any short name
			near.AddCommand(&cobra.Command{Use: f.Name, RunE: showHelp})
		}
	})
	if similar := near.SuggestionsFor(name); len(similar) > 0 {
		return hint.SimilarFlag.With("flag", similar[0])
	}
	return hint.Hint{}
}

// otherWith returns the first command that has a flag, by its long or short name, and the flag: the
// other command for lists, if c is for lists and that one has it.
func otherWith(c *cobra.Command, name string) (*cobra.Command, *pflag.Flag) {
	var found *cobra.Command
	for _, other := range c.Root().Commands() {
		forLists := func(c *cobra.Command) bool { return c.Flags().Lookup("slice") != nil }
		if hasFlag(other, name) && (found == nil || forLists(c) && forLists(other) && !forLists(found)) {
			found = other
		}
	}
	switch {
	case found == nil:
		return nil, nil
	case found.Flags().Lookup(name) != nil:
		return found, found.Flags().Lookup(name)
	}
	return found, found.Flags().ShorthandLookup(name)
}

// hasFlag reports whether a command has a flag, by its long or short name.
func hasFlag(c *cobra.Command, name string) bool {
	return c.Flag(name) != nil || len(name) == 1 && c.Flags().ShorthandLookup(name) != nil
}

// lacks returns a flag that a hint names and a command doesn't have, or "".
func lacks(c *cobra.Command, text string) string {
	for _, flag := range flagsIn(text) {
		if !hasFlag(c, flag) {
			return flag
		}
	}
	return ""
}

// flagsIn returns the flags that a hint names, without those of a command that it spells out.
func flagsIn(text string) (names []string) {
	for _, m := range namedFlag.FindAllStringSubmatch(namedCommand.ReplaceAllString(text, ""), -1) {
		names = append(names, m[1]+m[2])
	}
	return names
}

var (
	namedFlag    = regexp.MustCompile(`(?:^|[\s(])(?:--([a-z][a-z0-9-]*)|-([a-z])\b)`)
	namedCommand = regexp.MustCompile(`(?:df11-convert|hf|chmod|ulimit) [^;,]*|` +
		`\b(?:verify|batch) --[a-z-]+|^--\S+ is a flag of: .*`)
)
