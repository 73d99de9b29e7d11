package main

import (
	"bytes"
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
	before, err := os.Stat(filepath.Join(out, first))
	world.Must(t, err)
	must(t, "decode", df11, "-o", out)
	if after, err := os.Stat(filepath.Join(out, first)); err != nil || !os.SameFile(before, after) {
		t.Errorf("a file that was right is written again, %v", err)
	}
	must(t, "decode", df11, "--against", original, "-o", original) // where every file is right
}
