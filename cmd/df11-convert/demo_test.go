package main

import (
	"encoding/json"
	"os"
	"testing"
)

// TestDemo: the demo converts, publishes and verifies with no account, and leaves nothing but the result.
func TestDemo(t *testing.T) {
	t.Setenv("HF_TOKEN", "hf_not_for_the_demo")
	t.Setenv("HF_HUB_OFFLINE", "1")
	dir := t.TempDir()
	var r struct {
		Repo    string
		Weights int64
		Proof   struct {
			Equal   bool
			Weights int64
		}
	}
	if err := json.Unmarshal([]byte(must(t, "demo", "-o", dir, "--json")), &r); err != nil {
		t.Fatal(err)
	}
	if r.Repo != demoTarget || !r.Proof.Equal || r.Weights == 0 || r.Proof.Weights != r.Weights {
		t.Errorf("%+v", r)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 || left[0].Name() != "tiny-llama-DF11" {
		t.Errorf("left in the folder: %v, %v", left, err)
	}
}
