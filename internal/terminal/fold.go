package terminal

import (
	"cmp"
	"os"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Fold breaks lines that are wider than a terminal between words. In a table, the rest of a line
// continues below its last column. If that column begins too far right, all of it goes to lines of
// its own. Elsewhere, and if the columns before the last are wider than the terminal, the rest is
// indented. A command at the end of a line, after a colon, stays in one piece, so that people can
// copy it; the terminal may wrap it. A terminal without UTF-8 gets ASCII for our glyphs. If width is
// 0, there is no terminal, and Fold changes nothing.
func Fold(text string, width, indent int) string {
	if width == 0 {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(glyphs(text)) {
		foldLine(&b, line, width, indent)
	}
	return b.String()
}

// ascii replaces the glyphs that our texts and bars use.
var ascii = strings.NewReplacer("→", "->", "…", "...", "×", "x", "·", "|", "–", "-", "—", "-",
	"≤", "<=", "━", "=", "╸", ">", "─", "-")

// glyphs returns a text as the locale's terminal can show it. Only a locale that names another
// character set than UTF-8 has none.
func glyphs(text string) string {
	locale := cmp.Or(os.Getenv("LC_ALL"), os.Getenv("LC_CTYPE"), os.Getenv("LANG"))
	if locale == "" || strings.Contains(strings.ToLower(locale), "utf") {
		return text
	}
	return ascii.Replace(text)
}

func foldLine(b *strings.Builder, line string, width, indent int) {
	body := strings.TrimRight(line, "\n")
	if Columns(body) <= width {
		b.WriteString(line)
		return
	}
	head, hang := hanging(body, width, indent)
	b.WriteString(head)
	column := Columns(head)
	begin := column // where the words of this line begin
	next := func() {
		b.WriteString("\n" + strings.Repeat(" ", hang))
		column, begin = hang, hang
	}
	if begin > hang {
		next()
	}
	for _, word := range wordsOf(body[len(head):]) {
		n := Columns(word)
		switch {
		case column == begin:
		case column+1+n > width:
			next()
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
	}
	b.WriteString(line[len(body):])
}

// hanging splits a line into its head, which stays as it is, and the words after it. It also
// returns the column at which their next line begins.
func hanging(line string, width, indent int) (head string, hang int) {
	margin := len(line) - len(strings.TrimLeft(line, " "))
	i := strings.LastIndex(line, "  ")
	switch at := Columns(line[:i+2]); {
	case i <= margin, Columns(strings.TrimRight(line[:i], " ")) > width:
		return line[:margin], margin + indent
	case at <= width*2/3:
		return line[:i+2], at
	}
	return strings.TrimRight(line[:i], " "), margin + 4
}

// wordsOf returns the words of a text. A command at its end, after a colon, is one word.
func wordsOf(text string) []string {
	if before, command, ok := strings.Cut(text, ": df11-convert "); ok {
		return append(strings.Fields(before+":"), "df11-convert "+command)
	}
	return strings.Fields(text)
}

var styles = regexp.MustCompile("\x1b\\[[0-9]*m")

// Columns returns the width of a text on a terminal.
func Columns(text string) int { return utf8.RuneCountInString(styles.ReplaceAllString(text, "")) }
