package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// decodable makes a model of several shards in dir, and its conversion.
func decodable(t *testing.T, dir string) (original, df11 string) {
	t.Helper()
	original, df11 = filepath.Join(dir, "model"), filepath.Join(dir, "df11")
	world.Must(t, hubtest.NewLlama(1, hubtest.ModelOptions{Hidden: 32, Vocab: 256, Layers: 2, ShardBytes: 30_000}).Write(original))
	must(t, original, "-o", df11)
	return original, df11
}

// TestDecodeNeverWritesOntoItsInput checks that decode writes nothing into the model that it reads,
// by whatever path the output folder leads there, even with --force.
func TestDecodeNeverWritesOntoItsInput(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	_, df11 := decodable(t, dir)
	world.WriteAll(t, at("pipe"), fluxFiles())
	must(t, at("pipe"), "-o", at("pipe-df11"))
	component := filepath.Join(at("named"), "transformer")
	world.Must(t, os.Mkdir(at("named"), 0o777))
	world.Must(t, os.Rename(at("pipe-df11"), component))
	cases := [][2]string{ // model and output folder; internal/back judges more of them
		{df11, df11 + "/sub"}, {component, at("named")}, // its files would lie in named/transformer
	}
	if os.Symlink(df11, at("link")) == nil {
		cases = append(cases, [2]string{at("link"), df11})
	}
	t.Chdir(df11)
	cases = append(cases, [2]string{".", "."})
	before := world.ReadAll(t, dir)
	for _, c := range cases {
		for _, flags := range [][]string{nil, {"--force"}} {
			code, _, stderr := program(t, append([]string{"decode", c[0], "-o", c[1]}, flags...)...)
			if code != exitError || !strings.Contains(stderr, "belongs to the model that would be decoded") || !strings.Contains(stderr, "hint: ") {
				t.Errorf("decode %s -o %s %v: exit %d: %s", c[0], c[1], flags, code, stderr)
			}
		}
	}
	if after := world.ReadAll(t, dir); !maps.EqualFunc(before, after, bytes.Equal) {
		t.Errorf("something was written: %q, before %q", slices.Sorted(maps.Keys(after)), slices.Sorted(maps.Keys(before)))
	}
	must(t, "verify", df11, "--against", at("model"))
}

// TestDecodeKeepsFilesOfOthers checks that without --force, decode replaces no file that it didn't
// write, and puts no weights next to other weights. It doesn't write files again that have the
// right bytes.
func TestDecodeKeepsFilesOfOthers(t *testing.T) {
	t.Parallel()
	original, df11 := decodable(t, t.TempDir())
	const first, index = "model-00001-of-00003.safetensors", "model.safetensors.index.json"
	for name, words := range map[string]string{
		first: "holds other files with the names of the original's: " + first, index: "names of the original's: " + index,
		"else.safetensors": "holds weights of another model: else.safetensors",
	} {
		out := t.TempDir()
		world.Write(t, filepath.Join(out, name), []byte("{}"))
		world.Write(t, filepath.Join(out, "notes.txt"), []byte("mine"))
		before := world.ReadAll(t, out)
		code, _, stderr := program(t, "decode", df11, "-o", out)
		if code != exitError || !strings.Contains(stderr, words) || !strings.Contains(stderr, "--force") {
			t.Errorf("%s: exit %d: %s", name, code, stderr)
		}
		if after := world.ReadAll(t, out); !maps.EqualFunc(before, after, bytes.Equal) {
			t.Errorf("%s: the folder is now %q", name, slices.Sorted(maps.Keys(after)))
		}
		must(t, "decode", df11, "-o", out, "--force")
		if b := world.Read(t, filepath.Join(out, first)); !bytes.Equal(b, world.Read(t, filepath.Join(original, first))) {
			t.Errorf("%s: --force did not write the original's bytes", name)
		}
	}
	out := t.TempDir()
	world.Write(t, filepath.Join(out, index), world.Read(t, filepath.Join(original, index)))
	must(t, "decode", df11, "-o", out)
	if !bytes.Equal(world.Read(t, filepath.Join(out, index)), world.Read(t, filepath.Join(original, index))) {
		t.Error("the original's own index was replaced by an equal one")
	}
	if text := must(t, "decode", df11, "-o", out); !strings.Contains(text, "3 of them already there") {
		t.Errorf("the second run says %q", text)
	}
	world.Must(t, os.Remove(filepath.Join(out, first)))
	if text := must(t, "decode", df11, "--against", original, "-o", out); !strings.Contains(text, "2 of them already there") {
		t.Errorf("the third run says %q", text)
	}
	must(t, "decode", df11, "--against", original, "-o", original) // where every file is right
}

// TestDecodeWritesOnlyPlainWeightNames tries names of a manifest that anyone may have written.
func TestDecodeWritesOnlyPlainWeightNames(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, df11 := decodable(t, dir)
	file := filepath.Join(df11, "df11-manifest.json")
	good := world.Read(t, file)
	for name, ok := range map[string]bool{ // internal/back judges more of them
		"../x.safetensors": false, "x\x1b[2J.safetensors": false, ".bashrc": false,
		"MODEL-00002-of-00003.safetensors": false, "transformer/diffusion_pytorch_model.safetensors": true,
	} {
		var m map[string]any
		world.Must(t, json.Unmarshal(good, &m))
		m["source"].(map[string]any)["files"].([]any)[0].(map[string]any)["path"] = name
		b, err := json.Marshal(m)
		world.Must(t, err)
		world.Write(t, file, b)
		out := filepath.Join(t.TempDir(), "below", "out")
		code, _, stderr := program(t, "decode", df11, "-o", out, "--force")
		switch {
		case ok && code != exitOK:
			t.Errorf("%q: exit %d: %s", name, code, stderr)
		case ok && len(world.ReadAll(t, out)[name]) == 0:
			t.Errorf("%q was not written", name)
		case !ok && (code != exitWrong || strings.ContainsAny(stderr, "\x1b")):
			t.Errorf("%q: exit %d: %q", name, code, stderr)
		}
		if entries, _ := os.ReadDir(filepath.Dir(filepath.Dir(out))); !ok && len(entries) > 0 {
			t.Errorf("%q: %v was written", name, entries)
		}
	}
}
