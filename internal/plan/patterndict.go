package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Pattern is one member of a pattern dict: a Python regex that must match a whole module path, and the attributes
// whose weights form the unit, in encoding order. An empty list stands for the module's own weight
// (docs/format.md §10).
type Pattern struct {
	Regex string
	Attrs []string
}

// PatternDict is an ordered pattern dict. The order of attributes is part of the format, the order of patterns of
// config.json.
type PatternDict []Pattern

// maxPatterns bounds a pattern dict that comes from a file.
const maxPatterns = 4096

// ParsePatternDict reads a JSON object {"regex": ["attribute", …], …} and keeps its order. Every regex is checked to
// be one that Python and this package understand alike.
func ParsePatternDict(data []byte) (PatternDict, error) {
	d, err := decodePatternDict(data)
	if err != nil {
		return nil, fmt.Errorf("parse pattern dict: %w", err)
	}
	return d, nil
}

// UnmarshalJSON reads the dict as [ParsePatternDict] does.
func (d *PatternDict) UnmarshalJSON(data []byte) (err error) {
	*d, err = decodePatternDict(data)
	return err
}

// MarshalJSON writes the dict on one line, in order.
func (d PatternDict) MarshalJSON() ([]byte, error) { return d.AppendJSON(nil, "", ""), nil }

// decodePatternDict walks the tokens of the object, since a Go map would lose the order.
func decodePatternDict(data []byte) (PatternDict, error) {
	if !utf8.Valid(data) {
		return nil, fmt.Errorf("not UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	if err := expectDelim(dec, '{'); err != nil {
		return nil, err
	}
	d := PatternDict{}
	for dec.More() {
		p, err := decodePattern(dec)
		if err != nil {
			return nil, err
		}
		if d = append(d, p); len(d) > maxPatterns {
			return nil, fmt.Errorf("more than %d patterns", maxPatterns)
		}
	}
	if err := expectDelim(dec, '}'); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, fmt.Errorf("something follows the object")
	}
	return d, d.check()
}

// expectDelim takes one delimiter from the decoder.
func expectDelim(dec *json.Decoder, want json.Delim) error {
	t, err := dec.Token()
	if err != nil {
		return err
	}
	if t != want {
		return fmt.Errorf("want %q, got %v", want.String(), t)
	}
	return nil
}

// decodePattern reads one member.
func decodePattern(dec *json.Decoder) (Pattern, error) {
	key, err := dec.Token()
	if err != nil {
		return Pattern{}, err
	}
	p := Pattern{Regex: key.(string), Attrs: []string{}}
	if err := dec.Decode(&p.Attrs); err != nil {
		return Pattern{}, fmt.Errorf("pattern %q: want a list of attribute names: %w", p.Regex, err)
	}
	if p.Attrs == nil {
		return Pattern{}, fmt.Errorf("pattern %q: want a list of attribute names, got null", p.Regex)
	}
	return p, nil
}

// check refuses repeated patterns, repeated or malformed attributes, and regexes that cannot be matched.
func (d PatternDict) check() error {
	seen := map[string]bool{}
	for _, p := range d {
		if seen[p.Regex] {
			return fmt.Errorf("pattern %q appears twice", p.Regex)
		}
		seen[p.Regex] = true
		if _, err := compilePython(p.Regex); err != nil {
			return err
		}
		if err := checkAttrs(p); err != nil {
			return err
		}
	}
	return nil
}

// checkAttrs refuses attribute lists that Python's getattr could not follow, and repeated attributes.
func checkAttrs(p Pattern) error {
	seen := map[string]bool{}
	for _, a := range p.Attrs {
		if a == "" || strings.HasPrefix(a, ".") || strings.HasSuffix(a, ".") || strings.Contains(a, "..") {
			return fmt.Errorf("pattern %q: %q is no attribute path", p.Regex, a)
		}
		if seen[a] {
			return fmt.Errorf("pattern %q: attribute %q appears twice", p.Regex, a)
		}
		seen[a] = true
	}
	return nil
}

// AppendJSON appends the dict as Python's json.dumps writes it: in order, ASCII only, one attribute a line. Every line
// after the first starts with prefix, then one indent a level; with an empty indent everything is on one line.
func (d PatternDict) AppendJSON(dst []byte, prefix, indent string) []byte {
	lines := make([]func([]byte) []byte, len(d))
	for i, p := range d {
		lines[i] = func(b []byte) []byte {
			b = append(appendPyString(b, p.Regex), ": "...)
			return appendList(b, '[', ']', p.items(), next(prefix, indent), indent)
		}
	}
	return appendList(dst, '{', '}', lines, prefix, indent)
}

// items returns one writer an attribute.
func (p Pattern) items() []func([]byte) []byte {
	items := make([]func([]byte) []byte, len(p.Attrs))
	for i, a := range p.Attrs {
		items[i] = func(b []byte) []byte { return appendPyString(b, a) }
	}
	return items
}

// next returns the prefix one level deeper.
func next(prefix, indent string) string {
	if indent == "" {
		return ""
	}
	return prefix + indent
}

// appendList writes items between two brackets, in json.dumps style.
func appendList(b []byte, open, end byte, items []func([]byte) []byte, prefix, indent string) []byte {
	b = append(b, open)
	for i, item := range items {
		switch {
		case indent != "":
			b = append(append(b, comma(i)...), '\n')
			b = append(append(b, prefix...), indent...)
		case i > 0:
			b = append(b, ", "...)
		}
		b = item(b)
	}
	if indent != "" && len(items) > 0 {
		b = append(append(b, '\n'), prefix...)
	}
	return append(b, end)
}

// comma separates item i from the one before.
func comma(i int) string {
	if i == 0 {
		return ""
	}
	return ","
}

// appendPyString appends a JSON string with everything outside printable ASCII escaped, as json.dumps does.
func appendPyString(b []byte, s string) []byte {
	b = append(b, '"')
	for _, r := range s {
		b = appendPyRune(b, r)
	}
	return append(b, '"')
}

// appendPyRune appends one character of a JSON string; those above the basic plane become a surrogate pair.
func appendPyRune(b []byte, r rune) []byte {
	const short = "\"\"\\\\\bb\ff\nn\rr\tt" // character, then its letter
	if i := strings.IndexRune(short, r); i >= 0 && r < utf8.RuneSelf && i%2 == 0 {
		return append(b, '\\', short[i+1])
	}
	switch {
	case r >= ' ' && r < 0x7f:
		return append(b, byte(r))
	case r > 0xffff:
		r -= 0x10000
		return fmt.Appendf(b, `\u%04x\u%04x`, 0xd800+(r>>10), 0xdc00+(r&0x3ff))
	default:
		return fmt.Appendf(b, `\u%04x`, r)
	}
}

// clone returns a copy that shares nothing with d.
func (d PatternDict) clone() PatternDict {
	out := make(PatternDict, len(d))
	for i, p := range d {
		out[i] = Pattern{Regex: p.Regex, Attrs: append([]string{}, p.Attrs...)}
	}
	return out
}
