package main

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// TestInspect checks that inspect writes its page and prints the figures that plan predicts.
func TestInspect(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	src, out, page := filepath.Join(dir, "m"), filepath.Join(dir, "m-DF11"), filepath.Join(dir, "report.html")
	llama(t, src, "BF16", 0, "")
	must(t, src, "-o", out)
	var planned struct {
		Estimate struct {
			Bytes int64 `json:"output_bytes"`
		}
	}
	var got struct {
		Weights, Entropy float64
		Read             float64 `json:"weights_read"`
		DF11Bytes        int64   `json:"df11_bytes"`
		Units            []any
	}
	for to, args := range map[any][]string{&planned: {"plan", src}, &got: {"inspect", out, "--html", page}} {
		world.Must(t, json.Unmarshal([]byte(must(t, append(args, "--json")...)), to))
	}
	world.Read(t, page)
	if got.DF11Bytes != planned.Estimate.Bytes || got.Read != got.Weights || got.Entropy == 0 || len(got.Units) != 4 {
		t.Errorf("%+v, planned %+v", got, planned)
	}
}
