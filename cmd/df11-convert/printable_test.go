package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// evil clears a screen, rings, turns the direction of writing, and begins a line that looks like
// ours.
const evil = "\x1b[2J\x07\u202e\u2066\u009b31m\u2028\x7f\r\nhint: forged\tx"

// TestHostileTextNeverCommandsTheTerminal runs every command on models with hostile text in some
// place.
func TestHostileTextNeverCommandsTheTerminal(t *testing.T) {
	t.Setenv("HF_HUB_OFFLINE", "1")
	llama := hubtest.NewLlama(3, hubtest.ModelOptions{Hidden: 32, Vocab: 256, Layers: 2}).Files()
	quoted, err := json.Marshal(evil)
	world.Must(t, err)
	name := string(quoted[1 : len(quoted)-1])
	header := func(json string) []byte {
		return append(binary.LittleEndian.AppendUint64(nil, uint64(len(json))), json...)
	}
	models := map[string]map[string][]byte{
		"index":         {"model.safetensors.index.json": fmt.Appendf(nil, `{"weight_map":{"%s":"%[1]s.safetensors"}}`, name), "model.safetensors": nil},
		"config":        {"config.json": fmt.Appendf(nil, `{"model_type":"%s","architectures":["%[1]s","%[1]sForCausalLM"],"quantization_config":null,"dtype":"%[1]s"}`, name)},
		"broken":        {"config.json": []byte(`{"` + evil)},
		"quantized":     {"config.json": fmt.Appendf(nil, `{"quantization_config":{"quant_method":"%s"}}`, name)},
		"dtype":         {"model.safetensors": header(`{"` + name + `":{"dtype":"` + name + `","shape":[],"data_offsets":[0,0]}}`)},
		"tensor":        {"model.safetensors": header(`{"model.layers.0.` + name + `.weight":{"dtype":"BF16","shape":[0,2],"data_offsets":[0,0]},"model.layers.1.` + name + `":{"dtype":"F32","shape":[],"data_offsets":[0,0]}}`)},
		"files":         {evil + ".txt": []byte("x"), "a" + evil + "/b.json": []byte("x"), "LICENSE" + evil: []byte("x"), "bad\xff\x9b.txt": []byte("x")},
		"card":          {"README.md": []byte("---\nlicense: " + string(quoted) + "\nbase_model: " + string(quoted) + "\n---\n" + evil)},
		"df11 config":   {"config.json": fmt.Appendf(nil, `{"dfloat11_config":{"version":"0.5.0","threads_per_block":[512],"bytes_per_thread":8,"pattern_dict":{"%s":["%[1]s"]}}}`, name)},
		"manifest":      {"df11-manifest.json": fmt.Appendf(nil, `{"schema_version":1,"plan":{"digest":"%064d"},"source":{"repo":"%s","commit":"%[2]s"},"units":[],"files":[]}`, 0, name), "config.json": []byte(`{"dfloat11_config":{"version":"0.5.0","threads_per_block":[512],"bytes_per_thread":8,"pattern_dict":{"lm_head":[]}}}`)},
		"manifest tool": {"df11-manifest.json": fmt.Appendf(nil, `{"schema_version":1,"plan":{"digest":"%s"}}`, name), "config.json": []byte(`{"dfloat11_config":{"version":"0.5.0","threads_per_block":[512],"bytes_per_thread":8,"pattern_dict":{"lm_head":[]}}}`)},
	}
	for kind, changed := range models {
		t.Run(kind, func(t *testing.T) {
			dir := t.TempDir()
			model := filepath.Join(dir, "model")
			for _, files := range []map[string][]byte{llama, changed} {
				for f, b := range files {
					file := filepath.Join(model, filepath.FromSlash(f))
					if b == nil { // the index counts only without the single file
						world.Must(t, os.Remove(file))
					} else if os.MkdirAll(filepath.Dir(file), 0o777) == nil {
						_ = os.WriteFile(file, b, 0o666) // a file system may refuse the name
					}
				}
			}
			dict, list := filepath.Join(dir, "dict.json"), filepath.Join(dir, "list.yaml")
			world.Write(t, dict, fmt.Appendf(nil, `{"model.layers.\\d+":["%s"],"x%[1]s":[]}`, name))
			world.Write(t, list, fmt.Appendf(nil, "models:\n- source: org/%s\n  pattern-dict: %s\n", name, dict))
			for _, args := range [][]string{
				{"plan", model, "--pattern-dict", dict}, {"plan", model, "--log-format", "json"}, {"inspect", model, "--json"}, {"verify", model, "--against", model},
				{"decode", model, "-o", filepath.Join(dir, "back")}, {model, "-o", filepath.Join(dir, "out"), "-v"}, {"verify", filepath.Join(dir, "out"), "--against", model, "--json"},
				{"batch", list}, {"plan", "org/" + evil}, {evil}, {"plan", model, "--layout", evil}, {"plan", model, "--like", evil},
			} {
				_, stdout, stderr := program(t, args...)
				checkPrintable(t, fmt.Sprintf("%q stdout", args[:1]), stdout)
				checkPrintable(t, fmt.Sprintf("%q stderr", args[:1]), stderr)
			}
		})
	}
}

// checkPrintable reports anything in an output but glyphs, line ends, and blanks, and lines that
// aren't the program's.
func checkPrintable(t *testing.T, what, text string) {
	t.Helper()
	for i, r := range text {
		_, n := utf8.DecodeRuneInString(text[i:])
		if r != '\n' && !unicode.IsGraphic(r) || r == utf8.RuneError && n == 1 {
			t.Errorf("%s has %U: %q", what, r, text[max(0, i-80):min(len(text), i+80)])
			return
		}
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "hint: forged") {
			t.Errorf("%s has a forged line:\n%s", what, text)
		}
	}
}
