package safetensors

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Entry is one tensor of a file to be written.
type Entry struct {
	Name  string
	DType DType
	Shape []int64 // borrowed until NewHeader returns
}

// NewHeader makes the header of a new file, with its tensors in file order, exactly as the official crate writes it: tensors by descending dtype, then by name, and a
// header padded with spaces to a multiple of 8 (docs/format.md §11). The order of entries does not matter. At most one
// metadata entry is allowed, because the crate writes more of them in random order.
func NewHeader(metadata []MetadataEntry, entries []Entry) (*Header, error) {
	if len(metadata) > 1 {
		return nil, fail(ErrUnknown, metadataKey, "%d keys, only one has a defined place", len(metadata))
	}
	for _, m := range metadata {
		if !utf8.ValidString(m.Key) || !utf8.ValidString(m.Value) {
			return nil, fail(ErrNotUTF8, metadataKey, "")
		}
	}
	sorted := slices.Clone(entries)
	slices.SortFunc(sorted, compareEntries)
	h := &Header{Metadata: metadata, byName: make(map[string]int, len(entries))}
	end := int64(0)
	for _, e := range sorted {
		var err error
		if end, err = h.add(e, end); err != nil {
			return nil, err
		}
	}
	return h, h.write()
}

func compareEntries(a, b Entry) int {
	return cmp.Or(b.DType.rank()-a.DType.rank(), strings.Compare(a.Name, b.Name))
}

// add appends a tensor at the end of the data, and returns the new end.
func (h *Header) add(e Entry, at int64) (end int64, err error) {
	if e.Name == metadataKey {
		return 0, fail(ErrDuplicate, e.Name, "no tensor may have this name")
	}
	if !utf8.ValidString(e.Name) {
		return 0, fail(ErrNotUTF8, e.Name, "")
	}
	if _, ok := h.byName[e.Name]; ok {
		return 0, fail(ErrDuplicate, e.Name, "")
	}
	if len(e.Name) > MaxNameBytes || len(e.Shape) > maxRank || len(h.Tensors) == MaxTensors {
		return 0, fail(ErrLimit, e.Name, "at most %d bytes of name, %d dimensions and %d tensors", MaxNameBytes, maxRank, MaxTensors)
	}
	n, kind := e.DType.nBytes(e.Shape)
	if kind != "" {
		return 0, fail(kind, e.Name, "%s %v", quote(string(e.DType)), e.Shape)
	}
	if n > math.MaxInt64-maxHeaderBytes-lengthBytes-at {
		return 0, fail(ErrOverflow, e.Name, "file would be too large")
	}
	h.byName[e.Name] = len(h.Tensors)
	h.Tensors = append(h.Tensors, Tensor{Name: e.Name, DType: e.DType, Shape: slices.Clone(e.Shape), Begin: at, End: at + n})
	return at + n, nil
}

// write makes Raw of the rest.
func (h *Header) write() error {
	b := append(make([]byte, 0, 128*len(h.Tensors)), '{')
	for _, m := range h.Metadata {
		b = appendString(append(appendString(b, metadataKey), ":{"...), m.Key)
		b = append(appendString(append(b, ':'), m.Value), '}')
	}
	for i, t := range h.Tensors {
		if i > 0 || len(h.Metadata) > 0 {
			b = append(b, ',')
		}
		b = appendTensor(b, t)
	}
	b = append(b, '}')
	for len(b)%lengthBytes != 0 {
		b = append(b, ' ')
	}
	if len(b) > maxHeaderBytes {
		return fail(ErrHeaderLength, "", "%d bytes, the limit is %d", len(b), maxHeaderBytes)
	}
	h.Raw = b
	return nil
}

// appendTensor writes `"name":{"dtype":…,"shape":[…],"data_offsets":[…]}`.
func appendTensor(b []byte, t Tensor) []byte {
	b = fmt.Appendf(appendString(b, t.Name), `:{"dtype":"%s","shape":[`, t.DType)
	for i, dim := range t.Shape {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, dim, 10)
	}
	return fmt.Appendf(b, `],"data_offsets":[%d,%d]}`, t.Begin, t.End)
}

// appendString writes a JSON string with the crate's escapes (docs/format.md §11).
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
