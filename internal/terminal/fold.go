package terminal

import (
	"regexp"
	"strings"

	"github.com/rivo/uniseg"
)

// Fold breaks lines that are wider than a terminal between words. In a table, the rest of a line
// continues below its last column, unless that begins too far right. Elsewhere, the rest is
// indented. A command at the end of a line, after a colon or in the last column, stays in one
// piece, so that people can copy it; the terminal may wrap it. If width is 0, there is no terminal,
// and Fold changes nothing.
func Fold(text string, width int) string {
	if width == 0 {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		if Columns(strings.TrimRight(line, "\n")) <= width {
			b.WriteString(line)
			continue
		}
		foldLine(&b, line, width)
	}
	return b.String()
}

// Fits reports whether the rows of a table stay in their columns on a terminal: each is narrow enough,
// or [Fold] continues it below its last column.
func Fits(table string, width int) bool {
	for line := range strings.Lines(table) {
		gap := strings.LastIndex(strings.TrimRight(line, " \n"), "  ")
		if width > 0 && Columns(strings.TrimRight(line, " \n")) > width && Columns(line[:gap+2]) > width*2/3 {
			return false
		}
	}
	return true
}

func foldLine(b *strings.Builder, line string, width int) {
	hang := 2 + len(line) - len(strings.TrimLeft(line, " "))
	if gap := strings.LastIndex(line, "  "); Columns(line[:gap+2]) <= width*2/3 {
		hang = max(hang, Columns(line[:gap+2]))
	}
	column := 0
	for i, word := range wordsOf(line) {
		n := Columns(strings.TrimRight(word, "\n"))
		switch {
		case i > 0 && column+1+n > width && column > hang:
			b.WriteString("\n" + strings.Repeat(" ", hang))
			column = hang
		case i > 0:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
	}
}

// wordsOf splits a text at its spaces. A command at its end, after a colon or in the last column,
// is one word.
func wordsOf(text string) []string {
	for _, begin := range []string{": ", "  "} {
		i := strings.LastIndex(text, begin+"df11-convert ")
		if i >= 0 && !strings.Contains(text[i+2:], "  ") {
			return append(strings.Split(text[:i+1], " "), text[i+2:])
		}
	}
	return strings.Split(text, " ")
}

var styles = regexp.MustCompile("\x1b\\[[0-9]*m")

// Columns returns the width of a line on a terminal. Chinese, Japanese, and Korean letters and most
// emoji take two columns.
func Columns(line string) int { return uniseg.StringWidth(styles.ReplaceAllString(line, "")) }
