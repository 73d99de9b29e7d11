// Package python reads and writes JSON and the regular expressions of pattern dicts the way Python
// does, where Python differs from Go. It does no I/O and knows nothing about models.
package python

import (
	"fmt"
	"strings"
	"unicode/utf16"
)

// String writes a JSON string as json.dumps does. It escapes every character outside printable
// ASCII.
func String(s string) string {
	const short, letters = "\"\\\b\f\n\r\t", `"\bfnrt`
	b := []byte{'"'}
	for _, r := range s {
		switch i := strings.IndexRune(short, r); {
		case i >= 0:
			b = append(b, '\\', letters[i])
		case r >= ' ' && r < 0x7f:
			b = append(b, byte(r))
		default:
			for _, half := range utf16.AppendRune(nil, r) {
				b = fmt.Appendf(b, `\u%04x`, half)
			}
		}
	}
	return string(append(b, '"'))
}

// List writes a JSON list as json.dumps does. Every line after the first starts with prefix, and
// items are indented by one more indent. If indent is empty, everything is on one line.
func List(items []string, prefix, indent string) string {
	return join("[", items, "]", prefix, indent)
}

// Object writes a JSON object of members `"name": value` as json.dumps does. For prefix and indent,
// see [List].
func Object(members []string, prefix, indent string) string {
	return join("{", members, "}", prefix, indent)
}

func join(open string, items []string, end, prefix, indent string) string {
	if indent == "" {
		return open + strings.Join(items, ", ") + end
	}
	if len(items) == 0 {
		return open + end
	}
	line := "\n" + prefix + indent
	return open + line + strings.Join(items, ","+line) + "\n" + prefix + end
}
