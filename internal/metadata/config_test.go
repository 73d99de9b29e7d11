package metadata_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/safetensors"
	"github.com/df11-convert/df11-convert/internal/testing/alloc"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

const goldenDir = "../../testdata/golden"

var readFile = world.Read

func testDict(t testing.TB) catalog.PatternDict {
	t.Helper()
	dict, err := catalog.ParsePatternDict([]byte(`{"lm_head": [], "model\\.layers\\.\\d+": ["mlp.up_proj", "mlp.down_proj"]}`))
	must(t, err)
	return dict
}

// TestNewConfigIsOfficial compares new configs with the official compressor's.
func TestNewConfigIsOfficial(t *testing.T) {
	for _, model := range []string{"bias_f32", "qknorm"} {
		dir := filepath.Join(goldenDir, "e2e", model)
		dict, err := catalog.ParsePatternDict(readFile(t, filepath.Join(dir, "pattern_dict.json")))
		must(t, err)
		want := readFile(t, filepath.Join(dir, "single", "config.json"))
		if got, err := metadata.Config(&plan.Plan{PatternDict: dict}, plan.FormatVersion, nil); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: got %s, %v\nwant %s", model, got, err, want)
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
			got, err := metadata.InsertConfig([]byte(tt.config), plan.FormatVersion, testDict(t))
			if err != nil || string(got) != tt.want {
				t.Errorf("got %s, %v\nwant %s", got, err, tt.want)
			}
			want := tt.config
			if strings.Trim(want, "{}\n") == "" {
				want = "" // nothing else is in it
			}
			if back, err := metadata.RemoveConfig(got); err != nil || string(back) != want {
				t.Errorf("removed: %s, %v\nwant %s", back, err, want)
			}
		})
	}
	for config, want := range map[string]string{
		`{"dfloat11_config": {"a": [1]}, "b": 2}`:                   `{ "b": 2}`,
		`{"a": 1, "dfloat11_config": {}, "b": 2}`:                   `{"a": 1, "b": 2}`,
		`{"dfloat11_config": {}, "model_type": "llama"}`:            "",
		`{"model_type": "llama"}`:                                   `{"model_type": "llama"}`,
		`{"dfloat11_config": {}, "model_type": "llama", "c": null}`: `{ "model_type": "llama", "c": null}`,
	} {
		if got, err := metadata.RemoveConfig([]byte(config)); err != nil || string(got) != want {
			t.Errorf("%s becomes %s, %v, want %s", config, got, err, want)
		}
	}
}

// TestConfigsAreRefusedBeforeTheWeights checks that the plan refuses a config without a place for
// the member, before hours of work.
func TestConfigsAreRefusedBeforeTheWeights(t *testing.T) {
	for _, config := range []string{
		`{"dfloat11_config": {}}`, `{"dfloat11_config": null}`, `{"\u0064float11_config": 1}`, `{"dfloat11_config": 1, "dfloat11_config": null}`,
		``, `null`, `[]`, `{`, `{"a": 1,}`, `{"a": 1} x`, `{"a": 1}{}`, `{"a": NaNa}`, `{"a": NaN1}`, `{"a": 1NaN}`, `{NaN: 1}`, `{"a" 1}`, "{\"a\": \"\xff\"}",
		`{"a": ` + strings.Repeat("[", 1<<20),
	} {
		if _, err := metadata.InsertConfig([]byte(config), plan.FormatVersion, testDict(t)); err == nil {
			t.Errorf("%.60s is accepted", config)
		}
		if planned(t, []byte(config)) {
			t.Errorf("%.60s is planned", config)
		}
	}
	if !planned(t, []byte(`{"quantization_config": null}`)) {
		t.Error("a good config is refused")
	}
}

// planned reports whether a model with this config gets a plan, and if not, whether it's refused.
func planned(t *testing.T, config []byte) bool {
	t.Helper()
	const header = `{"x.0.w.weight":{"dtype":"BF16","shape":[2,1],"data_offsets":[0,4]}}`
	h, err := new(safetensors.Headers).Parse([]byte(header), int64(len(header))+8+4)
	must(t, err)
	weights := plan.File{Path: "model.safetensors"}
	_, err = plan.New(t.Context(), plan.Source{
		Files: []plan.File{weights, {Path: "config.json"}}, Weights: []plan.WeightFile{{File: weights, Header: h}}, Config: config,
	}, plan.Options{PatternDict: catalog.PatternDict{{Regex: `x\.\d+`, Attrs: []string{"w"}}}})
	if _, refused := errors.AsType[*plan.RefusedError](err); err != nil && !refused {
		t.Errorf("%.60s: %v", config, err)
	}
	return err == nil
}

// FuzzInsertConfig checks that any accepted input gets one run of text and nothing else, and that
// the result is the same object with one more member.
func FuzzInsertConfig(f *testing.F) {
	f.Add([]byte("{\n  \"a\": 1\n}\n"))
	f.Add([]byte("\ufeff{\r\n\t\"a\": [{}, \"\\\\\"]\r\n}"))
	f.Add([]byte(`{"a":{"b":null},"a":-0.0e+1}`))
	f.Add([]byte(`{ "x": NaN }`))
	dict := testDict(f)
	f.Fuzz(func(t *testing.T, config []byte) {
		var got []byte
		var err error
		alloc.PerByte(t, 500, len(config), func() { got, err = metadata.InsertConfig(config, plan.FormatVersion, dict) })
		if err != nil {
			if config != nil && planned(t, config) {
				t.Fatalf("%q is planned: %v", config, err)
			}
			return
		}
		n := 0
		for n < len(config) && got[n] == config[n] {
			n++
		}
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
		if again, err := metadata.InsertConfig(got, plan.FormatVersion, dict); err == nil {
			t.Fatalf("inserted twice: %q", again)
		}
	})
}

// must ends the test on an error.
var must = world.Must
