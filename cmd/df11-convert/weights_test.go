package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/safetensors"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// TestWeights reads every file of a result as the Python package df11 does: the weights of its
// modules, in the order of their names, and nothing else. A damaged file is an error.
func TestWeights(t *testing.T) {
	dir := t.TempDir()
	source, target := filepath.Join(dir, "model"), filepath.Join(dir, "model-DF11")
	world.Must(t, hubtest.NewLlama(1, hubtest.ModelOptions{Hidden: 32, Vocab: 64, Layers: 2}).Write(source))
	must(t, source, "-o", target, "-q")
	original := world.Read(t, filepath.Join(source, "model.safetensors"))
	h, err := safetensors.ReadHeader(bytes.NewReader(original), int64(len(original)))
	world.Must(t, err)
	weights := func(names ...string) (all string) {
		for _, name := range names {
			tensor, ok := h.Lookup(name)
			if !ok {
				t.Fatal("no", name)
			}
			all += string(original[h.DataStart()+tensor.Begin : h.DataStart()+tensor.End])
		}
		return all
	}
	if got := must(t, "weights", filepath.Join(target, "lm_head.safetensors")); got != weights("lm_head.weight") {
		t.Error("lm_head: other weights")
	}
	block := filepath.Join(target, "model_layers_1.safetensors")
	want := weights("model.layers.1.self_attn.q_proj.weight", "model.layers.1.self_attn.k_proj.weight")
	if got := must(t, "weights", block); !strings.HasPrefix(got, want) {
		t.Error("a layer: other weights")
	}
	damaged := world.Read(t, block)
	world.Write(t, block, damaged[:len(damaged)-1])
	ends(t, 1, "model_layers_1.safetensors", "weights", block)
}
