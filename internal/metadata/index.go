package metadata

import (
	"bytes"
	"encoding/json"
	"fmt"
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
	index := struct {
		Metadata  map[string]int64  `json:"metadata"`
		WeightMap map[string]string `json:"weight_map"`
	}{map[string]int64{"total_size": totalSize}, map[string]string{}}
	for _, f := range files {
		for _, name := range f.Tensors {
			index.WeightMap[name] = f.Path
		}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if enc.Encode(index) != nil {
		panic("metadata: internal error: an index does not encode")
	}
	return escapeASCII(b.String())
}

// escapeASCII escapes everything outside ASCII in JSON text, as Python's json does.
func escapeASCII(text string) []byte {
	var b []byte
	for _, r := range text {
		switch {
		case r < utf8.RuneSelf && r != 0x7f:
			b = append(b, byte(r))
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			b = fmt.Appendf(b, `\u%04x\u%04x`, high, low)
		default:
			b = fmt.Appendf(b, `\u%04x`, r)
		}
	}
	return b
}
