package hint_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/human"
)

// inCommand matches the facts of a row that are words of a command.
var inCommand = regexp.MustCompile(`(?:\b(?:df11-convert|hf|chmod)\b[^;,:]*?|(?:^|\s)--?[a-z][a-z-]* )(\{\$?\w+\})`)

// anyFact matches all facts of a row.
var anyFact = regexp.MustCompile(`\{\$?\w+\}`)

// ours are the facts whose values are words of this project's own.
var ours = []string{"{layout}", "{mode}", "{command}", "{flag}", "{number}"}

// TestFactsInCommandsAreQuoted wants a value from a repo, a folder, or the user to be one word of
// each command that a hint has, whatever the value, so that you can paste the command.
func TestFactsInCommandsAreQuoted(t *testing.T) {
	found := 0
	for _, row := range hint.All() {
		text := row.String()
		for text := text; ; {
			at := inCommand.FindStringSubmatchIndex(text)
			if at == nil {
				break
			}
			if name := text[at[2]:at[3]]; !strings.HasPrefix(name, "{$") && !slices.Contains(ours, name) {
				t.Errorf("%s: %s isn't quoted: %s", row.Cause, name, text)
			}
			found++
			text = text[:at[2]] + "x" + text[at[3]:] // the next one may be of the same command
		}
		for _, evil := range []string{"a b", "$(reboot)", "`x`; rm -rf ~", "it's", "{original}", "{$model}", "a\nb", "", "-"} {
			var facts []string
			for _, name := range []string{"model", "original", "folder", "file", "repo", "path", "not"} {
				facts = append(facts, name, evil)
			}
			want := anyFact.ReplaceAllStringFunc(text, func(fact string) string {
				switch name := strings.Trim(fact, "{$}"); {
				case !slices.Contains(facts, name):
					return fact
				case fact[1] == '$':
					return human.ShellWord(evil)
				}
				return evil
			})
			if got := row.With(facts...).String(); got != want {
				t.Errorf("%s: with %q: %s, want %s", row.Cause, evil, got, want)
			}
		}
	}
	if found < 20 {
		t.Errorf("%d facts in commands", found)
	}
}
