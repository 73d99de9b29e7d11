package human_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/human"
)

// TestShellWord has a shell read words back: each is one line, and names the very same thing.
func TestShellWord(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("NOT TESTED: no bash here")
	}
	for _, text := range []string{
		"", "a", "a b", "a`id`b", "$(id)", "it's", `"`, `\`, `\n`, "a\nb", "\r\t\x1b[31m\x07f", "ü 模", "\xff", "\u202ex", "*", "~", "-x", "a\n`'\\1",
		"\ufffd", "\x01a",
	} {
		word := human.ShellWord(text)
		if strings.ContainsAny(word, "\n\r\x1b\u202e") {
			t.Errorf("%q is not one line", word)
		}
		got, err := exec.Command("bash", "-c", "printf %s "+word+" ''").Output()
		if err != nil || string(got) != text {
			t.Errorf("%q reads as %q: %v", text, got, err)
		}
	}
}
