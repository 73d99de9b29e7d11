package safetensors_test

import (
	"bytes"
	"errors"
	"testing"

	reference "github.com/nlpodyssey/safetensors"

	"github.com/df11-convert/df11-convert/internal/safetensors"
	"github.com/df11-convert/df11-convert/internal/testing/alloc"
)

// FuzzParseHeader parses hostile headers. If one is refused, the error is a HeaderError. If one is
// accepted, it covers the file exactly once, needs memory in proportion, survives another layout,
// and the independent reader accepts it, too.
func FuzzParseHeader(f *testing.F) {
	for _, c := range goldenCases(f) {
		file := unhex(f, c.File)
		h, err := safetensors.ReadHeader(bytes.NewReader(file), int64(len(file)))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(h.Raw, uint16(int64(len(file))-h.DataStart()))
	}
	f.Add([]byte(`{"\u0061\ud83d\ude00":{"dtype":"F4","shape":[2,0],"data_offsets":[0,0]}}`), uint16(0))
	f.Fuzz(func(t *testing.T, raw []byte, nData uint16) {
		var h *safetensors.Header
		var err error
		alloc.PerByte(t, 64, len(raw), func() { h, err = new(safetensors.Headers).Parse(raw, 8+int64(len(raw))+int64(nData)) })
		if err != nil {
			if he := (*safetensors.HeaderError)(nil); !errors.As(err, &he) {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		checkAccepted(t, h, int64(nData))
	})
}

func checkAccepted(t *testing.T, h *safetensors.Header, nData int64) {
	t.Helper()
	entries := make([]safetensors.Entry, 0, len(h.Tensors))
	end, known := int64(0), true
	for _, x := range h.ByOffset() {
		if x.Begin != end || x.End < x.Begin {
			t.Fatalf("tensor %q at [%d, %d) after %d", x.Name, x.Begin, x.End, end)
		}
		end = x.End
		entries = append(entries, safetensors.Entry{Name: x.Name, DType: x.DType, Shape: x.Shape})
		_, err := reference.ParseDType(string(x.DType))
		known = known && err == nil
	}
	if end != nData {
		t.Fatalf("tensors end at %d of %d", end, nData)
	}
	l, err := safetensors.NewHeader(nil, entries)
	must(t, err)
	file := append(l.Bytes(), make([]byte, nData)...)
	again, err := safetensors.ReadHeader(bytes.NewReader(file), l.Size())
	if err != nil || len(again.Tensors) != len(h.Tensors) {
		t.Fatalf("own layout does not parse: %v", err)
	}
	if _, err := reference.Deserialize(file); known && err != nil {
		t.Fatalf("independent reader refuses our layout: %v", err)
	}
}
