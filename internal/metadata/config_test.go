package metadata_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/alloc"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/plan"
)

const goldenDir = "../../testdata/golden"

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func testDict(t testing.TB) plan.PatternDict {
	t.Helper()
	dict, err := plan.ParsePatternDict([]byte(`{"lm_head": [], "model\\.layers\\.\\d+": ["mlp.up_proj", "mlp.down_proj"]}`))
	if err != nil {
		t.Fatal(err)
	}
	return dict
}

// TestNewConfigIsOfficial compares with what the official compressor wrote.
func TestNewConfigIsOfficial(t *testing.T) {
	for _, model := range []string{"bias_f32", "qknorm"} {
		dir := filepath.Join(goldenDir, "e2e", model)
		dict, err := plan.ParsePatternDict(readFile(t, filepath.Join(dir, "pattern_dict.json")))
		if err != nil {
			t.Fatal(err)
		}
		want := readFile(t, filepath.Join(dir, "single", "config.json"))
		if got := metadata.NewConfig(dict); !bytes.Equal(got, want) {
			t.Errorf("%s: got %s\nwant %s", model, got, want)
		}
	}
}

func TestInsertConfigStyles(t *testing.T) {
	oneLine := `"dfloat11_config": {"version": "0.5.0", "threads_per_block": [512], "bytes_per_thread": 8, ` +
		`"pattern_dict": {"lm_head": [], "model\\.layers\\.\\d+": ["mlp.up_proj", "mlp.down_proj"]}}`
	indented := func(nl, in string) string {
		return strings.NewReplacer("\n", nl, "\t", in).Replace("\t" + `"dfloat11_config": {
		"version": "0.5.0",
		"threads_per_block": [
			512
		],
		"bytes_per_thread": 8,
		"pattern_dict": {
			"lm_head": [],
			"model\\.layers\\.\\d+": [
				"mlp.up_proj",
				"mlp.down_proj"
			]
		}
	}`)
	}
	tests := []struct{ name, config, want string }{
		{"two spaces", "{\n  \"a\": 1e5,\n  \"b\": [\n    1.0\n  ]\n}\n",
			"{\n  \"a\": 1e5,\n  \"b\": [\n    1.0\n  ],\n" + indented("\n", "  ") + "\n}\n"},
		{"four spaces", "{\n    \"a\": 1\n}", "{\n    \"a\": 1,\n" + indented("\n", "    ") + "\n}"},
		{"tabs", "{\n\t\"a\": 1\n}\n\n", "{\n\t\"a\": 1,\n" + indented("\n", "\t") + "\n}\n\n"},
		{"windows", "{\r\n  \"a\": 1\r\n}\r\n", "{\r\n  \"a\": 1,\r\n" + indented("\r\n", "  ") + "\r\n}\r\n"},
		{"byte order mark", "\ufeff{\n  \"a\": \"}\\\"\"\n}", "\ufeff{\n  \"a\": \"}\\\"\",\n" + indented("\n", "  ") + "\n}"},
		{"python words", "{\n  \"a\": [NaN, -Infinity],\n  \"NaN\": Infinity\n}",
			"{\n  \"a\": [NaN, -Infinity],\n  \"NaN\": Infinity,\n" + indented("\n", "  ") + "\n}"},
		{"one line", `{"b": 1, "a": {"x": "é"}}`, `{"b": 1, "a": {"x": "é"}, ` + oneLine + `}`},
		{"no indent", "{\n\"a\": 1\n}", "{\n\"a\": 1,\n" + oneLine + "\n}"},
		{"space before comma", "{\n  \"a\": 1\n  ,\n  \"b\": 2 }", "{\n  \"a\": 1\n  ,\n  \"b\": 2,\n" + indented("\n", "  ") + " }"},
		{"empty", "{}", "{" + oneLine + "}"},
		{"empty lines", "{\n\n}\n", "{\n" + oneLine + "\n\n}\n"},
		{"null quantisation", "{\"quantization_config\": null}", "{\"quantization_config\": null, " + oneLine + "}"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := metadata.InsertConfig([]byte(tt.config), testDict(t))
			if err != nil || string(got) != tt.want {
				t.Errorf("got %s, %v\nwant %s", got, err, tt.want)
			}
		})
	}
}

func TestInsertConfigRefuses(t *testing.T) {
	tests := []struct {
		config string
		is     error
	}{
		{`{"dfloat11_config": {}}`, metadata.ErrAlreadyDF11},
		{`{"dfloat11_config": null}`, metadata.ErrAlreadyDF11},
		{`{"\u0064float11_config": 1}`, metadata.ErrAlreadyDF11},
		{`{"quantization_config": {"quant_method": "fp8"}}`, metadata.ErrQuantized},
		{`{"quantization_config": null, "quantization_config": {}}`, metadata.ErrQuantized},
		{``, nil}, {`[]`, nil}, {`{`, nil}, {`{"a": 1,}`, nil}, {`{"a": 1} x`, nil}, {`{"a": 1}{}`, nil},
		{`{"a": NaNa}`, nil}, {`{"a": NaN1}`, nil}, {`{"a": 1NaN}`, nil}, {`{NaN: 1}`, nil}, {`{"a" 1}`, nil}, {"{\"a\": \"\xff\"}", nil}, {`{"a": ` + strings.Repeat("[", 1<<20), nil},
	}
	for _, tt := range tests {
		_, err := metadata.InsertConfig([]byte(tt.config), testDict(t))
		if err == nil || tt.is != nil && !errors.Is(err, tt.is) {
			t.Errorf("%.60s: got %v", tt.config, err)
		}
	}
}

// FuzzInsertConfig checks on any accepted input that nothing but one run of text was added, and that the result is the
// same object with one more member.
func FuzzInsertConfig(f *testing.F) {
	f.Add([]byte("{\n  \"a\": 1\n}\n"))
	f.Add([]byte("\ufeff{\r\n\t\"a\": [{}, \"\\\\\"]\r\n}"))
	f.Add([]byte(`{"a":{"b":null},"a":-0.0e+1}`))
	f.Add([]byte(`{ "x": NaN }`))
	dict := testDict(f)
	f.Fuzz(func(t *testing.T, config []byte) {
		var got []byte
		var err error
		alloc.PerByte(t, 500, len(config), func() { got, err = metadata.InsertConfig(config, dict) })
		if err != nil {
			return
		}
		n := commonPrefix(config, got)
		if !bytes.HasSuffix(got, config[n:]) {
			t.Fatalf("source bytes changed: %q became %q", config, got)
		}
		if bytes.Contains(config, []byte("NaN")) || bytes.Contains(config, []byte("Infinity")) {
			return // not JSON for the check below
		}
		var before, after map[string]any
		trim := func(b []byte) []byte { return bytes.TrimPrefix(b, []byte("\ufeff")) }
		if err := json.Unmarshal(trim(config), &before); err != nil {
			t.Fatalf("accepted %q: %v", config, err)
		}
		if err := json.Unmarshal(trim(got), &after); err != nil || len(after) != len(before)+1 {
			t.Fatalf("%q became %q: %v", config, got, err)
		}
		if again, err := metadata.InsertConfig(got, dict); !errors.Is(err, metadata.ErrAlreadyDF11) {
			t.Fatalf("inserted twice: %q, %v", again, err)
		}
	})
}

func commonPrefix(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}
