package human

import (
	"os/exec"
	"strings"
	"testing"
)

// TestPosixWord has a shell read words back: each is one line, and names the very same thing.
func TestPosixWord(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("NOT TESTED: no bash here")
	}
	for _, text := range []string{
		"", "a", "a b", "a`id`b", "$(id)", "it's", `"`, `\`, `\n`, "a\nb", "\r\t\x1b[31m\x07f", "ü 模", "\xff", "\u202ex", "*", "~", "-x", "a\n`'\\1",
		"\ufffd", "\x01a",
	} {
		word := PosixWord(text)
		if strings.ContainsAny(word, "\n\r\x1b\u202e") {
			t.Errorf("%q is not one line", word)
		}
		got, err := exec.Command("bash", "-c", "printf %s "+word+" ''").Output()
		if err != nil || string(got) != text {
			t.Errorf("%q reads as %q: %v", text, got, err)
		}
	}
}

// TestWindowsWord checks that words are those of both Windows shells where that's possible, and one
// line.
func TestWindowsWord(t *testing.T) {
	for text, want := range map[string]string{
		`C:\models\out`: `C:\models\out`, "org/model@main": "org/model@main", "--push": "--push", `C:\my models\out`: `"C:\my models\out"`,
		`C:\my models\`: `"C:\my models\\"`, "it's": `"it's"`, "": `""`, "a&b": `"a&b"`, "a,b": `"a,b"`, "@list": `"@list"`, "*.txt": `"*.txt"`, "~": `"~"`,
		"a$b": "'a$b'", "it's 5%": "'it''s 5%'", "a`b": "'a`b'", "ü 模": `"ü 模"`, "a\nb": `$'a\x0ab'`,
	} {
		if got := windowsWord(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
