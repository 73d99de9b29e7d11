package metadata_test

import (
	"testing"

	"github.com/df11-convert/df11-convert/internal/metadata"
)

func TestIndex(t *testing.T) {
	got := metadata.Index(map[string]string{
		"model.norm.weight": "model-00001-of-00002.safetensors", "b.\"é\U0001f600\x7f<": "model-00001-of-00002.safetensors",
		"a.weight": "model-00002-of-00002.safetensors",
	}, 1234567890123)
	const want = `{
  "metadata": {
    "total_size": 1234567890123
  },
  "weight_map": {
    "a.weight": "model-00002-of-00002.safetensors",
    "b.\"\u00e9\ud83d\ude00\u007f<": "model-00001-of-00002.safetensors",
    "model.norm.weight": "model-00001-of-00002.safetensors"
  }
}
`
	if string(got) != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if got := string(metadata.Index(nil, 0)); got != "{\n  \"metadata\": {\n    \"total_size\": 0\n  },\n  \"weight_map\": {}\n}\n" {
		t.Errorf("empty index: %s", got)
	}
}
