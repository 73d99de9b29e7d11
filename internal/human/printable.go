package human

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Names, server messages, and other texts from outside may hold control characters, which would
// command the terminal or turn a sentence around. Everything printed to stdout and stderr passes
// through Printable, which leaves line ends and tabs alone. A reader of JSON undoes that, so Message
// makes every message.

// Message formats a sentence that may hold foreign names. It escapes what shows no glyph, and also
// line ends and tabs.
func Message(format string, args ...any) string {
	return Printable(OneLine(fmt.Sprintf(format, args...)))
}

// Printable escapes every character that shows no glyph, such as controls and marks of writing
// direction, and every byte that isn't valid UTF-8. It uses JSON's escapes for characters, so a
// JSON document keeps its meaning.
func Printable(s string) string {
	if strings.IndexFunc(s, unprintable) < 0 {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case !unprintable(r):
			b.WriteRune(r)
		case r != utf8.RuneError:
			for _, half := range utf16.AppendRune(nil, r) {
				fmt.Fprintf(&b, `\u%04x`, half)
			}
		case strings.HasPrefix(s[i:], string(utf8.RuneError)):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		}
	}
	return b.String()
}

func unprintable(r rune) bool {
	return r == utf8.RuneError || r != '\n' && r != '\t' && !unicode.IsGraphic(r)
}

var lineAndColumn = strings.NewReplacer("\n", `\n`, "\t", `\t`)

// OneLine escapes line ends and tabs, so that the text can't begin a line or a column.
func OneLine(s string) string { return lineAndColumn.Replace(s) }
