package safetensors

import (
	"cmp"
	"encoding/binary"
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
	Shape []int64 // borrowed until NewLayout returns
}

// Layout says where every byte of a new file goes: the header, then the tensors without gaps.
type Layout struct {
	Header  []byte   // 8-byte length, JSON and padding: the file up to the data start
	Tensors []Tensor // in file order, offsets relative to the data start
	Size    int64    // of the whole file

	byName map[string]Tensor
}

// NewLayout lays out a file exactly as the official crate writes it: tensors by descending dtype, then by name, and a
// header padded with spaces to a multiple of 8 (docs/format.md §11). The order of entries does not matter. At most one
// metadata entry is allowed, because the crate writes more of them in random order.
func NewLayout(metadata []MetadataEntry, entries []Entry) (*Layout, error) {
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
	l := &Layout{byName: make(map[string]Tensor, len(entries))}
	for _, e := range sorted {
		if err := l.add(e); err != nil {
			return nil, err
		}
	}
	return l, l.finish(metadata)
}

func compareEntries(a, b Entry) int {
	return cmp.Or(b.DType.rank()-a.DType.rank(), strings.Compare(a.Name, b.Name))
}

// add appends a tensor at the end of the data.
func (l *Layout) add(e Entry) error {
	if e.Name == metadataKey {
		return fail(ErrDuplicate, e.Name, "no tensor may have this name")
	}
	if !utf8.ValidString(e.Name) {
		return fail(ErrNotUTF8, e.Name, "")
	}
	if _, ok := l.byName[e.Name]; ok {
		return fail(ErrDuplicate, e.Name, "")
	}
	if len(e.Name) > MaxNameBytes || len(e.Shape) > maxRank || len(l.Tensors) == MaxTensors {
		return fail(ErrLimit, e.Name, "at most %d bytes of name, %d dimensions and %d tensors", MaxNameBytes, maxRank, MaxTensors)
	}
	n, kind := e.DType.nBytes(e.Shape)
	if kind != "" {
		return fail(kind, e.Name, "%s %v", quote(string(e.DType)), e.Shape)
	}
	if n > math.MaxInt64-maxHeaderBytes-lengthBytes-l.Size {
		return fail(ErrOverflow, e.Name, "file would be too large")
	}
	t := Tensor{Name: e.Name, DType: e.DType, Shape: slices.Clone(e.Shape), Begin: l.Size, End: l.Size + n}
	l.byName[e.Name] = t
	l.Tensors = append(l.Tensors, t)
	l.Size = t.End
	return nil
}

// finish writes the header and adds its length to Size.
func (l *Layout) finish(metadata []MetadataEntry) error {
	b := append(make([]byte, lengthBytes, lengthBytes+128*len(l.Tensors)), '{')
	for _, m := range metadata {
		b = appendString(append(appendString(b, metadataKey), ":{"...), m.Key)
		b = append(appendString(append(b, ':'), m.Value), '}')
	}
	for i, t := range l.Tensors {
		if i > 0 || len(metadata) > 0 {
			b = append(b, ',')
		}
		b = appendTensor(b, t)
	}
	b = append(b, '}')
	for len(b)%lengthBytes != 0 {
		b = append(b, ' ')
	}
	if len(b)-lengthBytes > maxHeaderBytes {
		return fail(ErrHeaderLength, "", "%d bytes, the limit is %d", len(b)-lengthBytes, maxHeaderBytes)
	}
	binary.LittleEndian.PutUint64(b, uint64(len(b)-lengthBytes))
	l.Header = b
	l.Size += int64(len(b))
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

// DataStart returns the offset in the file of the first byte of tensor data.
func (l *Layout) DataStart() int64 { return int64(len(l.Header)) }

// Lookup finds a tensor by name.
func (l *Layout) Lookup(name string) (Tensor, bool) {
	t, ok := l.byName[name]
	return t, ok
}
