package human

import (
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"unicode"
)

// ShellWord quotes a text, if necessary, so that it is one word of a command line of this system,
// and one line.
func ShellWord(text string) string {
	if runtime.GOOS == "windows" {
		return windowsWord(text)
	}
	return PosixWord(text)
}

var posixSafe = regexp.MustCompile(`^[\w./@+:=,-]+$`)

// PosixWord is ShellWord for a text that's read on other systems: its bytes are the same on each.
func PosixWord(text string) string {
	switch {
	case posixSafe.MatchString(text):
		return text
	case strings.ContainsFunc(text, isLost):
		var b strings.Builder
		for _, c := range []byte(text) {
			switch {
			case c == '\'' || c == '\\':
				b.WriteString(`\` + string(rune(c)))
			case c < ' ' || c >= 0x7f:
				fmt.Fprintf(&b, `\x%02x`, c)
			default:
				b.WriteByte(c)
			}
		}
		return "$'" + b.String() + "'"
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// windowsSafe matches words that cmd.exe and PowerShell read as they are. PowerShell splits words
// at commas, and gives @ a meaning at the beginning.
var windowsSafe = regexp.MustCompile(`^[\w./\\+:=-][\w./\\+:=@-]*$`)

// windowsWord quotes for cmd.exe and PowerShell. What they read differently is quoted for
// PowerShell.
func windowsWord(text string) string {
	switch {
	case windowsSafe.MatchString(text):
		return text
	case strings.ContainsFunc(text, isLost):
		return PosixWord(text) // a shell such as Git's: no path of Windows has such characters
	case strings.ContainsAny(text, "\"$`%"):
		return "'" + strings.ReplaceAll(text, "'", "''") + "'"
	}
	// programs read \" as a quotation mark, and \\ before one as a backslash
	kept := strings.TrimRight(text, `\`)
	return `"` + kept + strings.Repeat(`\`, 2*(len(text)-len(kept))) + `"`
}

// isLost reports whether a character may change when it's copied from a terminal, as those without
// a glyph do, and all spaces but the usual one.
func isLost(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) }
