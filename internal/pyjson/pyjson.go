// Package pyjson follows Python's json module where it differs from Go's: in the spelling of what it writes, and in the
// numbers that it reads. It knows nothing of what the JSON says.
package pyjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf16"
)

// String writes a JSON string as json.dumps does: every character outside printable ASCII is escaped.
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

// List writes a JSON list as json.dumps does. Every line after the first starts with prefix, and the items with one
// indent more; with an empty indent everything is on one line.
func List(items []string, prefix, indent string) string { return join("[", items, "]", prefix, indent) }

// Object writes a JSON object of members `"name": value` as json.dumps does, with prefix and indent as in [List].
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

// Unmarshal is json.Unmarshal for what Python's json reads: every JSON file of a model goes through it. A value that is
// NaN or an Infinity decodes as a list does, so it is skipped where nobody asks for it.
func Unmarshal(data []byte, v any) error {
	return json.Unmarshal(Standard(bytes.TrimPrefix(data, []byte(BOM))), v)
}

// BOM is the byte order mark that a file may start with.
const BOM = "\ufeff"

// stringOrWord matches a JSON string, or a word for a number that only Python writes.
var stringOrWord = regexp.MustCompile(`(?s)"(?:\\.|[^"\\])*"|-?Infinity|NaN`)

// Standard replaces NaN, Infinity and -Infinity outside of strings by lists of the same length. A JSON decoder accepts a
// list wherever a value may stand and nowhere else, and every offset stays true.
func Standard(data []byte) []byte {
	if !bytes.Contains(data, []byte("NaN")) && !bytes.Contains(data, []byte("Infinity")) {
		return data
	}
	return stringOrWord.ReplaceAllFunc(data, func(match []byte) []byte {
		if match[0] == '"' {
			return match
		}
		return fmt.Appendf(nil, "[%s]", strings.Repeat("1", len(match)-2))
	})
}
