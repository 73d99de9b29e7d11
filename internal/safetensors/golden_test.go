package safetensors_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	reference "github.com/nlpodyssey/safetensors"

	"github.com/df11-convert/df11-convert/internal/safetensors"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

const goldenDir = "../../testdata/golden"

type goldenCase struct {
	Metadata map[string]string `json:"metadata"`
	Tensors  []struct {
		Name  string            `json:"name"`
		DType safetensors.DType `json:"dtype"`
		Shape []int64           `json:"shape"`
		Data  string            `json:"data_hex"`
	} `json:"tensors"`
	File string `json:"file_hex"`
}

func goldenCases(t testing.TB) []goldenCase {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(goldenDir, "safetensors", "case.json"))
	must(t, err)
	var set struct {
		Cases []goldenCase `json:"cases"`
	}
	must(t, json.Unmarshal(text, &set))
	if len(set.Cases) == 0 {
		t.Fatal("no golden cases")
	}
	return set.Cases
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	must(t, err)
	return b
}

// TestGoldenFiles writes every golden tensor list, in two input orders, and compares with the
// official crate's bytes.
func TestGoldenFiles(t *testing.T) {
	for i, c := range goldenCases(t) {
		var metadata []safetensors.MetadataEntry
		for k, v := range c.Metadata {
			metadata = append(metadata, safetensors.MetadataEntry{Key: k, Value: v})
		}
		var entries []safetensors.Entry
		data := map[string][]byte{}
		for _, x := range c.Tensors {
			entries = append(entries, safetensors.Entry{Name: x.Name, DType: x.DType, Shape: x.Shape})
			data[x.Name] = unhex(t, x.Data)
		}
		for range 2 {
			l, err := safetensors.NewHeader(metadata, entries)
			if err != nil {
				t.Fatalf("case %d: %v", i, err)
			}
			file := l.Bytes()
			for _, x := range l.Tensors {
				file = append(file, data[x.Name]...)
			}
			if !bytes.Equal(file, unhex(t, c.File)) || l.Size() != int64(len(file)) {
				t.Fatalf("case %d: got %q, want %q", i, file, unhex(t, c.File))
			}
			rand.Shuffle(len(entries), func(a, b int) { entries[a], entries[b] = entries[b], entries[a] })
		}
	}
}

// TestGoldenRead reads every golden file and the end-to-end models, and compares with an
// independent reader.
func TestGoldenRead(t *testing.T) {
	for _, c := range goldenCases(t) {
		compareWithReference(t, unhex(t, c.File))
	}
	models, err := filepath.Glob(filepath.Join(goldenDir, "e2e", "*", "*", "*.safetensors"))
	if err != nil || len(models) == 0 {
		t.Fatalf("no end-to-end files: %v", err)
	}
	for _, path := range models {
		file, err := os.ReadFile(path)
		must(t, err)
		compareWithReference(t, file)
	}
}

func compareWithReference(t *testing.T, file []byte) {
	t.Helper()
	h, err := safetensors.ReadHeader(bytes.NewReader(file), int64(len(file)))
	must(t, err)
	want, err := reference.Deserialize(file)
	if err != nil {
		for _, x := range h.Tensors {
			if _, err := reference.ParseDType(string(x.DType)); err != nil {
				return // the reference lacks this type; the golden bytes above cover it
			}
		}
		t.Fatalf("independent reader: %v", err)
	}
	if want.Len() != len(h.Tensors) {
		t.Fatalf("%d tensors, independent reader has %d", len(h.Tensors), want.Len())
	}
	for _, x := range h.Tensors {
		view, ok := want.Tensor(x.Name)
		got := file[h.DataStart()+x.Begin : h.DataStart()+x.End]
		if !ok || view.DType().String() != string(x.DType) || !bytes.Equal(view.Data(), got) {
			t.Errorf("tensor %q differs from the independent reader's", x.Name)
		}
	}
}

// must ends the test if err isn't nil.
var must = world.Must
