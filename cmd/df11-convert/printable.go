package main

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Names, server messages and whatever else comes from a model may hold control characters, which would command the terminal.
// Two rules keep them away from it. All that reaches stdout and stderr passes through printable, which leaves line ends and
// tabs alone; and texts are put together by printf, which does not let its arguments begin a line or a column of their own.

// printable replaces every character that shows no glyph, such as controls and marks of writing direction, and every byte that
// is no UTF-8, by an escape. Inside of a JSON string that is an escape of JSON, so a document keeps its meaning.
func printable(s string) string {
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

// printf is fmt.Fprintf for formats of our own with foreign arguments: line ends and tabs of the arguments are escaped.
func printf(w io.Writer, format string, args ...any) {
	fmt.Fprint(w, sprintf(format, args...))
}

func sprintf(format string, args ...any) string {
	for i, a := range args {
		switch a := a.(type) {
		case string:
			args[i] = lineAndColumn.Replace(a)
		case error:
			args[i] = lineAndColumn.Replace(a.Error())
		}
	}
	return fmt.Sprintf(format, args...)
}
