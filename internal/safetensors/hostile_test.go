package safetensors_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/safetensors"
	"github.com/df11-convert/df11-convert/internal/testing/alloc"
)

// repeated returns a header of n members, each made from its number.
func repeated(n int, member func(b *bytes.Buffer, i int)) []byte {
	var b bytes.Buffer
	for i := range n {
		b.WriteByte("{,"[min(i, 1)])
		member(&b, i)
	}
	b.WriteByte('}')
	return b.Bytes()
}

func emptyTensor(b *bytes.Buffer, i int) {
	fmt.Fprintf(b, `"w%d":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}`, i)
}

// A header over a limit is refused before it takes much memory, and the error names the limit.
func TestHeaderBombsAreRefusedWithinMemory(t *testing.T) {
	tensor := func(shape string) []byte {
		return []byte(`{"w":{"dtype":"U8","shape":[` + shape + `],"data_offsets":[0,0]}}`)
	}
	for _, bomb := range []struct {
		name, names string
		raw         []byte
	}{
		{"dimensions", "dimensions", tensor("0" + strings.Repeat(",1", 5_000_000))},
		{"offsets", "dimensions", []byte(`{"w":{"data_offsets":[0` + strings.Repeat(",1", 5_000_000))},
		{"one dimension too many", "16 dimensions", tensor("0" + strings.Repeat(",1", 16))},
		{"tensors", "200000 tensors", repeated(200_001, emptyTensor)},
		{"metadata keys", "4096 keys", append(append([]byte(`{"__metadata__":`),
			repeated(100_000, func(b *bytes.Buffer, i int) { fmt.Fprintf(b, `"%d":""`, i) })...), '}')},
		{"name", "name", []byte(`{"` + strings.Repeat("x", 1000) + `":{}}`)},
		{"long name", "string", []byte(`{"` + strings.Repeat("x", 40<<20) + `":{}}`)},
		{"escaped name", "string", []byte(`{"` + strings.Repeat(`\"`, 20<<20) + `":{}}`)},
		{"metadata bytes", "string", []byte(`{"__metadata__":{"a":"` + strings.Repeat("x", 40<<20) + `"}}`)},
	} {
		alloc.Within(t, 384<<20, func() { // most of it is garbage at once
			_, err := new(safetensors.Headers).Parse(bomb.raw, 8+int64(len(bomb.raw)))
			if !errors.Is(err, safetensors.ErrLimit) || !strings.Contains(err.Error(), bomb.names) {
				t.Errorf("%s: %v", bomb.name, err)
			}
		})
	}
}

// Many files together can't hold more than one file may.
func TestHeadersOfAModelShareOneLimit(t *testing.T) {
	var all safetensors.Headers
	file := func(n int) *bytes.Reader {
		raw := repeated(n, emptyTensor)
		return bytes.NewReader(append([]byte{byte(len(raw)), byte(len(raw) >> 8), byte(len(raw) >> 16), 0, 0, 0, 0, 0}, raw...))
	}
	read := func(r *bytes.Reader) error {
		_, err := all.Read(r, r.Size())
		return err
	}
	most := file(150_000)
	must(t, read(most))
	for range 2 { // a refused header doesn't count
		if err := read(most); !errors.Is(err, safetensors.ErrLimit) {
			t.Errorf("300000 tensors in two files: %v", err)
		}
	}
	if err := read(file(50_000)); err != nil {
		t.Errorf("200000 tensors in two files: %v", err)
	}
	raw := repeated(50_001, emptyTensor) // as a manifest holds them
	if _, err := all.Parse(raw, 8+int64(len(raw))); !errors.Is(err, safetensors.ErrLimit) {
		t.Errorf("250001 tensors in three files: %v", err)
	}
	var wide safetensors.Headers
	// 60,000,000 bytes
	blank := append([]byte{0, 0x87, 0x93, 3, 0, 0, 0, 0, '{', '}'}, bytes.Repeat([]byte(" "), 60_000_000-2)...)
	for i, want := range []bool{true, false} {
		if _, err := wide.Read(bytes.NewReader(blank), int64(len(blank))); (err == nil) != want {
			t.Errorf("60,000,000 bytes of header, file %d: %v", i+1, err)
		}
	}
}
