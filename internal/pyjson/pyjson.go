// Package pyjson follows Python's json module where it differs from Go's: in the spelling of what it writes, and in the
// numbers that it reads. It knows nothing of what the JSON says.
package pyjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
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

// Unmarshal is json.Unmarshal for texts that Python's json reads; every JSON file of a model goes through it. NaN and Infinity
// decode as lists, so they are skipped unless somebody asks for their value.
func Unmarshal(data []byte, v any) error {
	return json.Unmarshal(Standard(bytes.TrimPrefix(data, []byte(bom))), v)
}

// Member is one member of an object.
type Member struct {
	Key   string
	Value json.RawMessage // NaN and Infinity are lists, as in [Standard]
	End   int             // offset in the text behind the value
}

// Members lists the members of the one object that a text of UTF-8 holds, and returns the offset behind its opening brace. A
// repeated key is listed each time: Python takes the last.
func Members(data []byte) (list []Member, begin int, err error) {
	text := Standard(data)
	if !utf8.Valid(text) {
		return nil, 0, errors.New("not valid UTF-8")
	}
	skip := len(text) - len(bytes.TrimPrefix(text, []byte(bom)))
	dec := json.NewDecoder(bytes.NewReader(text[skip:]))
	offset := func() int { return skip + int(dec.InputOffset()) }
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, 0, errors.New("not a JSON object")
	}
	begin = offset()
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, 0, err
		}
		m := Member{Key: key.(string)}
		if err := dec.Decode(&m.Value); err != nil {
			return nil, 0, err
		}
		m.End = offset()
		list = append(list, m)
	}
	if _, err := dec.Token(); err != nil {
		return nil, 0, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, 0, errors.New("text after the object")
	}
	return list, begin, nil
}

// bom is the byte order mark that a file may start with.
const bom = "\ufeff"

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
