package metadata

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// IndexFile is one file of the uncompressed rest.
type IndexFile struct {
	Path    string
	Tensors []string
}

// RemainderIndex returns the index of a rest that is spread over several files, as transformers writes it: sorted, two
// spaces of indent, ASCII only, final newline. totalSize is the number of bytes of all tensors in it.
func RemainderIndex(files []IndexFile, totalSize int64) []byte {
	home := map[string]string{}
	for _, f := range files {
		for _, name := range f.Tensors {
			home[name] = f.Path
		}
	}
	b := append([]byte("{\n  \"metadata\": {\n    \"total_size\": "), strconv.FormatInt(totalSize, 10)...)
	b = append(b, "\n  },\n  \"weight_map\": {"...)
	for i, name := range slices.Sorted(maps.Keys(home)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, "\n    "...)
		b = append(appendASCII(b, name), ": "...)
		b = appendASCII(b, home[name])
	}
	if len(home) > 0 {
		b = append(b, "\n  "...)
	}
	return append(b, "}\n}\n"...)
}

// appendASCII appends a JSON string with everything outside ASCII escaped, as Python's json does.
func appendASCII(b []byte, s string) []byte {
	var quoted bytes.Buffer
	enc := json.NewEncoder(&quoted)
	enc.SetEscapeHTML(false)
	if enc.Encode(s) != nil {
		panic("metadata: internal error: a string does not encode")
	}
	for _, r := range string(bytes.TrimRight(quoted.Bytes(), "\n")) {
		switch {
		case r < utf8.RuneSelf && r != 0x7f:
			b = append(b, byte(r))
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			b = appendEscape(appendEscape(b, high), low)
		default:
			b = appendEscape(b, r)
		}
	}
	return b
}

func appendEscape(b []byte, r rune) []byte {
	const digits = "0123456789abcdef"
	return append(b, '\\', 'u', digits[r>>12&15], digits[r>>8&15], digits[r>>4&15], digits[r&15])
}
