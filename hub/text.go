package hub

import (
	"strings"
	"time"
	"unicode"
)

// oneLine makes a server's text fit for a terminal: no control characters, one line, bounded.
func oneLine(s string) string {
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

// seconds converts without overflow; a year is as good as for ever here.
func seconds(n int64) time.Duration {
	const year = 365 * 24 * 3600
	return time.Duration(min(n, year)) * time.Second
}
