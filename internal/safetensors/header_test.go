package safetensors_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/safetensors"
)

func parse(json string, nData int64) (*safetensors.Header, error) {
	return new(safetensors.Headers).Parse([]byte(json), 8+int64(len(json))+nData)
}

func TestParseHeaderKeepsOrder(t *testing.T) {
	raw := ` {"b":{"shape":[2,3],"dtype":"BF16","data_offsets":[4,16]},` +
		`"__metadata__":{"z":"1\ufffd","a":"\u00e9\ud83d\ude00\n\/"},` +
		`"a\"":{"data_offsets":[0,4],"dtype":"F32","shape":[]},"e":{"dtype":"F4","shape":[0,7],"data_offsets":[4,4]}}  `
	raw = raw[1:]
	h, err := parse(raw, 16)
	must(t, err)
	wantMeta := []safetensors.MetadataEntry{{Key: "z", Value: "1\ufffd"}, {Key: "a", Value: "é😀\n/"}}
	if !slices.Equal(h.Metadata, wantMeta) {
		t.Errorf("metadata %q", h.Metadata)
	}
	if got := names(h.Tensors); !slices.Equal(got, []string{"b", `a"`, "e"}) {
		t.Errorf("header order %q", got)
	}
	if got := names(h.ByOffset()); !slices.Equal(got, []string{`a"`, "e", "b"}) {
		t.Errorf("data order %q", got)
	}
	b, ok := h.Lookup("b")
	if !ok || b.NElems() != 6 || b.NBytes() != 12 || h.DataStart() != int64(8+len(raw)) {
		t.Errorf("tensor b = %+v", b)
	}
	if scalar, _ := h.Lookup(`a"`); scalar.NElems() != 1 {
		t.Errorf("scalar has %d elements", scalar.NElems())
	}
	if _, ok := h.Lookup("c"); ok || string(h.Raw) != raw {
		t.Error("unknown tensor found, or raw text changed")
	}
}

func names(list []safetensors.Tensor) (out []string) {
	for _, t := range list {
		out = append(out, t.Name)
	}
	return out
}

// Every defect has its own kind and, if it's in a tensor, the tensor's name.
func TestHostileHeaders(t *testing.T) {
	const ok = `{"dtype":"U8","shape":[4],"data_offsets":[0,4]}`
	deep := strings.Repeat(`{"a":`, 100_000)
	tests := []struct {
		name, json string
		nData      int64
		kind       safetensors.Kind
		tensor     string
	}{
		{"empty", ``, 0, safetensors.ErrSyntax, ""},
		{"leading space", ` {}`, 0, safetensors.ErrSyntax, ""},
		{"array", `[]`, 0, safetensors.ErrSyntax, ""},
		{"cut", `{"w":`, 0, safetensors.ErrSyntax, "w"},
		{"text after", `{}{}`, 0, safetensors.ErrSyntax, ""},
		{"nul padding", "{}\x00\x00", 0, safetensors.ErrSyntax, ""},
		{"trailing comma", `{"w":` + ok + `,}`, 4, safetensors.ErrSyntax, ""},
		{"not an object", `{"w":[1]}`, 0, safetensors.ErrSyntax, "w"},
		{"deep nesting", deep, 0, safetensors.ErrUnknown, "a"},
		{"deep arrays", `{"w":{"shape":` + strings.Repeat("[", 100_000), 0, safetensors.ErrNumber, "w"},
		{"not UTF-8", "{\"\xff\":" + ok + "}", 4, safetensors.ErrNotUTF8, ""},
		{"lone surrogate", `{"\ud800":` + ok + `}`, 4, safetensors.ErrSyntax, ""},
		{"swapped surrogates", `{"\udc00\ud800":` + ok + `}`, 4, safetensors.ErrSyntax, ""},
		{"bad escape", `{"\x":` + ok + `}`, 4, safetensors.ErrSyntax, ""},
		{"short escape", `{"\u00`, 0, safetensors.ErrSyntax, ""},
		{"control character", "{\"a\n\":" + ok + "}", 4, safetensors.ErrSyntax, ""},
		{"duplicate tensor", `{"w":` + ok + `,"w":` + ok + `}`, 4, safetensors.ErrDuplicate, "w"},
		{"duplicate by escape", `{"w":` + ok + `,"\u0077":` + ok + `}`, 4, safetensors.ErrDuplicate, "w"},
		{"duplicate member", `{"w":{"dtype":"U8","dtype":"U8","shape":[4],"data_offsets":[0,4]}}`, 4, safetensors.ErrDuplicate, "w"},
		{"duplicate metadata", `{"__metadata__":{},"__metadata__":{}}`, 0, safetensors.ErrDuplicate, "__metadata__"},
		{"duplicate metadata key", `{"__metadata__":{"a":"1","a":"1"}}`, 0, safetensors.ErrDuplicate, "__metadata__"},
		{"metadata number", `{"__metadata__":{"a":1}}`, 0, safetensors.ErrSyntax, "__metadata__"},
		{"unknown member", `{"w":{"dtype":"U8","shape":[4],"data_offsets":[0,4],"x":1}}`, 4, safetensors.ErrUnknown, "w"},
		{"missing dtype", `{"w":{"shape":[4],"data_offsets":[0,4]}}`, 4, safetensors.ErrMissing, "w"},
		{"missing shape", `{"w":{"dtype":"U8","data_offsets":[0,4]}}`, 4, safetensors.ErrMissing, "w"},
		{"missing offsets", `{"w":{"dtype":"U8","shape":[4]}}`, 4, safetensors.ErrMissing, "w"},
		{"unknown dtype", `{"w":{"dtype":"F7","shape":[4],"data_offsets":[0,4]}}`, 4, safetensors.ErrDType, "w"},
		{"lower-case dtype", `{"w":{"dtype":"bf16","shape":[2],"data_offsets":[0,4]}}`, 4, safetensors.ErrDType, "w"},
		{"negative dimension", `{"w":{"dtype":"U8","shape":[-4],"data_offsets":[0,4]}}`, 4, safetensors.ErrNumber, "w"},
		{"float dimension", `{"w":{"dtype":"U8","shape":[4.0],"data_offsets":[0,4]}}`, 4, safetensors.ErrNumber, "w"},
		{"exponent", `{"w":{"dtype":"U8","shape":[4e0],"data_offsets":[0,4]}}`, 4, safetensors.ErrNumber, "w"},
		{"leading zero", `{"w":{"dtype":"U8","shape":[04],"data_offsets":[0,4]}}`, 4, safetensors.ErrNumber, "w"},
		{"2^63", `{"w":{"dtype":"U8","shape":[9223372036854775808],"data_offsets":[0,4]}}`, 4, safetensors.ErrNumber, "w"},
		{"product overflow", `{"w":{"dtype":"U8","shape":[4294967296,4294967296,4294967296],"data_offsets":[0,4]}}`, 4, safetensors.ErrOverflow, "w"},
		{"product overflow to zero", `{"w":{"dtype":"U8","shape":[4294967296,4294967296,0],"data_offsets":[0,0]}}`, 0, safetensors.ErrOverflow, "w"},
		{"bit overflow", `{"w":{"dtype":"F64","shape":[2305843009213693952],"data_offsets":[0,0]}}`, 0, safetensors.ErrOverflow, "w"},
		{"half a byte", `{"w":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}}`, 2, safetensors.ErrPartialByte, "w"},
		{"one offset", `{"w":{"dtype":"U8","shape":[4],"data_offsets":[4]}}`, 4, safetensors.ErrOffsets, "w"},
		{"backwards", `{"w":{"dtype":"U8","shape":[4],"data_offsets":[4,0]}}`, 4, safetensors.ErrOffsets, "w"},
		{"size", `{"w":{"dtype":"BF16","shape":[4],"data_offsets":[0,4]}}`, 4, safetensors.ErrSize, "w"},
		{"overlap", `{"a":` + ok + `,"w":{"dtype":"U8","shape":[2],"data_offsets":[3,5]}}`, 5, safetensors.ErrOverlap, "w"},
		{"empty inside another", `{"a":` + ok + `,"w":{"dtype":"U8","shape":[0],"data_offsets":[2,2]}}`, 4, safetensors.ErrOverlap, "w"},
		{"hole", `{"a":` + ok + `,"w":{"dtype":"U8","shape":[2],"data_offsets":[5,7]}}`, 7, safetensors.ErrHole, "w"},
		{"hole at start", `{"w":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}`, 3, safetensors.ErrHole, "w"},
		{"trailing data", `{"w":` + ok + `}`, 5, safetensors.ErrTrailing, ""},
		{"file cut", `{"w":` + ok + `}`, 3, safetensors.ErrCut, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := parse(tt.json, tt.nData)
			var he *safetensors.HeaderError
			if !errors.As(err, &he) || !errors.Is(err, tt.kind) || he.Tensor != tt.tensor {
				t.Fatalf("got %v, want %q at %q", err, tt.kind, tt.tensor)
			}
			if len(err.Error()) > 400 {
				t.Errorf("message of %d bytes", len(err.Error()))
			}
		})
	}
}

func TestHeaderSize(t *testing.T) {
	tests := []struct {
		n, fileSize uint64
		kind        safetensors.Kind
	}{
		{2, 10, ""},
		{100_000_000, 100_000_008, ""},
		{100_000_001, 1 << 40, safetensors.ErrLimit},
		{1 << 63, 1 << 40, safetensors.ErrHeaderLength},
		{1<<64 - 8, 1 << 40, safetensors.ErrHeaderLength},
		{3, 10, safetensors.ErrHeaderLength},
		{0, 10, safetensors.ErrHeaderLength},
		{2, 9, safetensors.ErrTooShort},
	}
	for _, tt := range tests {
		n, err := safetensors.HeaderSize(binary.LittleEndian.AppendUint64(nil, tt.n), int64(tt.fileSize))
		if tt.kind == "" && (err != nil || n != int64(tt.n)) || tt.kind != "" && !errors.Is(err, tt.kind) {
			t.Errorf("length %d in %d bytes: %d, %v", tt.n, tt.fileSize, n, err)
		}
	}
	if _, err := safetensors.HeaderSize([]byte{1, 2}, 100); !errors.Is(err, safetensors.ErrTooShort) {
		t.Errorf("two bytes: %v", err)
	}
}

// TestReadHeaderOfShortFiles reads files that are shorter than they claim.
func TestReadHeaderOfShortFiles(t *testing.T) {
	file := append([]byte{2, 0, 0, 0, 0, 0, 0, 0}, "{}"...)
	for n := range file {
		_, err := safetensors.ReadHeader(bytes.NewReader(file[:n]), int64(n))
		if !errors.Is(err, safetensors.ErrTooShort) {
			t.Errorf("%d bytes: %v", n, err)
		}
		_, err = safetensors.ReadHeader(bytes.NewReader(file[:n]), int64(len(file)))
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%d of %d bytes: %v", n, len(file), err)
		}
	}
	if _, err := safetensors.ReadHeader(bytes.NewReader(file), int64(len(file))); err != nil {
		t.Error(err)
	}
}

// TestNullMetadata checks that null stands for no metadata, as for the official crate.
func TestNullMetadata(t *testing.T) {
	raw := `{"__metadata__":null,"w":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}`
	h, err := new(safetensors.Headers).Parse([]byte(raw), int64(8+len(raw)+4))
	if err != nil || h.Metadata != nil || len(h.Tensors) != 1 {
		t.Errorf("%+v, %v", h, err)
	}
}

// TestOnlyIncompleteFilesAreFetchedAgain checks that no hint sends you to fetch what would be the
// same again.
func TestOnlyIncompleteFilesAreFetchedAgain(t *testing.T) {
	for _, kind := range []safetensors.Kind{safetensors.ErrTooShort, safetensors.ErrHeaderLength,
		safetensors.ErrNotUTF8, safetensors.ErrSyntax, safetensors.ErrDuplicate, safetensors.ErrMissing,
		safetensors.ErrUnknown, safetensors.ErrNumber, safetensors.ErrDType, safetensors.ErrOverflow,
		safetensors.ErrPartialByte, safetensors.ErrOffsets, safetensors.ErrSize, safetensors.ErrOverlap,
		safetensors.ErrHole, safetensors.ErrLimit, safetensors.ErrCut, safetensors.ErrTrailing,
		safetensors.ErrText} {
		hint := (&safetensors.HeaderError{Kind: kind}).Hint().String()
		again := strings.Contains(hint, "fetch the file again")
		incomplete := kind == safetensors.ErrTooShort || kind == safetensors.ErrCut
		if hint == "" || again != incomplete {
			t.Errorf("%s: %q", kind, hint)
		}
	}
}
