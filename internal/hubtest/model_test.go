package hubtest

import (
	"bytes"
	"github.com/df11-convert/df11-convert/internal/testing/world"
	"testing"
)

// goldenWeights pins the generator: other tests record hashes of its models.
const goldenWeights = "696436427c57ca5d67a593c3f8baeb5fd5d77973e5243e7c3b4c44f292872aec"

// TestModel checks that a model is always the same, and that each range of a file is a part of the
// whole.
func TestModel(t *testing.T) {
	if got := world.Sum(NewLlama(1, ModelOptions{}).Files()["model.safetensors"]); got != goldenWeights {
		t.Errorf("the weights of seed 1 changed: %s", got)
	}
	m := NewQwen3(2, ModelOptions{Vocab: 333, Hidden: 48, HeadDim: 10})
	body := m.Weights[0]
	whole := m.Files()[body.Path]
	for _, r := range [][2]int64{{0, 1}, {0, body.Size}, {7, 4096}, {1001, 1}, {5000, 12345}, {body.Size - 3, 3}} {
		p := make([]byte, r[1])
		if n, err := body.Body.ReadAt(p, r[0]); n != len(p) || err != nil || !bytes.Equal(p, whole[r[0]:r[0]+r[1]]) {
			t.Errorf("%v: %d, %v", r, n, err)
		}
	}
	if n, err := body.Body.ReadAt(make([]byte, 10), body.Size-4); n != 4 || err == nil {
		t.Errorf("over the end: %d, %v", n, err)
	}
}
