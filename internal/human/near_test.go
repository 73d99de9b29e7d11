package human

import (
	"slices"
	"testing"
)

func TestNear(t *testing.T) {
	for _, tt := range []struct {
		unknown     string
		names, want []string
	}{
		{"tranformer", []string{"vae", "text_encoder", "transformer"}, []string{"transformer", "vae", "text_encoder"}},
		{"modle.safetensors", []string{"other.safetensors", "Model.safetensors"}, []string{"Model.safetensors", "other.safetensors"}},
		{"x", nil, nil},
		{"", []string{"1", "2", "3", "4", "5", "6"}, []string{"1", "2", "3", "4", "5"}},
	} {
		if got := Near(tt.unknown, tt.names); !slices.Equal(got[:min(len(got), len(tt.want))], tt.want) || len(got) > 5 {
			t.Errorf("%q: got %q, want %q", tt.unknown, got, tt.want)
		}
	}
}

func TestMisspelled(t *testing.T) {
	for _, tt := range []struct {
		unknown string
		names   []string
		want    string
	}{
		{"ckp", []string{"logs", "ckpt"}, "ckpt"},
		{"Modle-8B", []string{"model-8b", "other"}, "model-8b"},
		{"CKPT", []string{"ckpt"}, "ckpt"},
		{"a", []string{"b"}, ""},
		{"llama", []string{"qwen3", "gemma"}, ""},
		{"checkpoint-100", []string{"checkpoint-25000"}, ""},
		{"x", nil, ""},
	} {
		if got := Misspelled(tt.unknown, tt.names); got != tt.want {
			t.Errorf("%q among %q: got %q, want %q", tt.unknown, tt.names, got, tt.want)
		}
	}
}
