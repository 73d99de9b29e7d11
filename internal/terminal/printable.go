package terminal

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Names, server messages and whatever else comes from a model may hold control characters, which
// would command the terminal. Two rules keep them away from it. All that reaches stdout and stderr
// passes through Printable, which leaves line ends and tabs alone; and who puts texts together
// passes the foreign ones through OneLine first.

// Printable replaces every character that shows no glyph, such as controls and marks of writing
// direction, and every byte that is no UTF-8, by an escape. Inside of a JSON string that is an
// escape of JSON, so a document keeps its meaning.
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

// OneLine escapes line ends and tabs: the text begins no line and no column of its own.
func OneLine(s string) string { return lineAndColumn.Replace(s) }
