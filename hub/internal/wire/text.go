package wire

import (
	"strings"
	"time"
	"unicode"
)

// OneLine makes a server's text fit for a terminal: no control characters, one line, bounded.
func OneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > 500 {
		s = s[:500] + "…"
	}
	return strings.ToValidUTF8(s, "")
}

// Seconds converts without overflow; a year is as good as for ever here.
func Seconds(n int64) time.Duration {
	const year = 365 * 24 * 3600
	return time.Duration(min(n, year)) * time.Second
}
