package safetensors

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Entry is one tensor of a new file.
type Entry struct {
	Name  string
	DType DType
	Shape []int64 // borrowed until NewHeader returns
}

// NewHeader makes the header of a new file, with the tensors in file order, exactly as the official
// crate writes it: tensors by descending dtype, then by name, and a header padded with spaces to a
// multiple of 8 (docs/format.md §11). The order of entries doesn't matter. It takes at most one
// metadata entry, because the crate writes several in random order. It refuses whatever
// [Headers.Parse] refuses.
func NewHeader(metadata []MetadataEntry, entries []Entry) (*Header, error) {
	if len(metadata) > 1 {
		return nil, fail(ErrUnknown, metadataKey, "%d keys, want at most 1", len(metadata))
	}
	b := append(make([]byte, 0, 128*len(entries)), '{')
	for _, m := range metadata {
		b = append(appendString(append(appendString(b, metadataKey), ":{"...), m.Key), ':')
		b = append(appendString(b, m.Value), "},"...)
	}
	end := int64(0)
	for _, e := range slices.SortedFunc(slices.Values(entries), compareEntries) {
		n, kind := e.DType.nBytes(e.Shape)
		if n > math.MaxInt64-maxHeaderBytes-lengthBytes-end {
			kind = ErrOverflow
		}
		if kind != "" {
			return nil, fail(kind, e.Name, "%.100q %v", e.DType, e.Shape)
		}
		b = append(appendTensor(b, e, end, end+n), ',')
		end += n
	}
	b = append(bytes.TrimSuffix(b, []byte{','}), '}')
	for len(b)%lengthBytes != 0 {
		b = append(b, ' ')
	}
	return new(Headers).Parse(b, lengthBytes+int64(len(b))+end)
}

func compareEntries(a, b Entry) int {
	return cmp.Or(b.DType.rank()-a.DType.rank(), strings.Compare(a.Name, b.Name))
}

// appendTensor appends `"name":{"dtype":…,"shape":[…],"data_offsets":[…]}`.
func appendTensor(b []byte, e Entry, begin, end int64) []byte {
	shape := strings.ReplaceAll(fmt.Sprint(e.Shape), " ", ",")
	return fmt.Appendf(appendString(b, e.Name), `:{"dtype":"%s","shape":%s,"data_offsets":[%d,%d]}`,
		e.DType, shape, begin, end)
}

// appendString appends a JSON string with the crate's escapes (docs/format.md §11).
func appendString(b []byte, s string) []byte {
	const short = "btn_fr" // escapes of the control characters 8 to 13; 11 has none
	b = append(b, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c >= 8 && c <= 13 && c != 11:
			b = append(b, '\\', short[c-8])
		case c < 0x20:
			b = fmt.Appendf(b, `\u%04x`, c)
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}
