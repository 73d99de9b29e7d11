package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// TestDecodeKeepsRightFiles checks that decode doesn't write files again that have the right bytes,
// no matter who wrote them.
func TestDecodeKeepsRightFiles(t *testing.T) {
	t.Parallel()
	original, df11, out := filepath.Join(t.TempDir(), "model"), t.TempDir(), t.TempDir()
	world.Must(t, hubtest.NewLlama(1, hubtest.ModelOptions{Hidden: 32, Vocab: 256, Layers: 2, ShardBytes: 30_000}).Write(original))
	must(t, original, "-o", df11)
	const first = "model-00001-of-00003.safetensors"
	must(t, "decode", df11, "-o", out)
	before, err := os.Stat(filepath.Join(out, first))
	world.Must(t, err)
	must(t, "decode", df11, "-o", out)
	if after, err := os.Stat(filepath.Join(out, first)); err != nil || !os.SameFile(before, after) {
		t.Errorf("a file that was right is written again, %v", err)
	}
}
