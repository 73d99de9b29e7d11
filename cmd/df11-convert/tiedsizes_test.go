package main

import (
	"encoding/json"
	"testing"

	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// TestATiedHeadCountsOnce checks that sizes count the matrix of a tied model once, whether or not the
// source stores it twice: a loaded model has it once, so leaving the copy out is no gain of DF11. A plan
// still counts every byte that a run reads.
func TestATiedHeadCountsOnce(t *testing.T) {
	srv := startHub(t, "hf_any")
	type sizes struct {
		BF16 int64 `json:"bf16_bytes"`
		DF11 int64 `json:"df11_bytes"`
		read int64
	}
	of := map[bool]sizes{}
	for repo, twice := range map[string]bool{"org/once": false, "org/twice": true} {
		srv.AddModel(repo, hubtest.NewLlama(1, hubtest.ModelOptions{Hidden: 32, Vocab: 512, Layers: 1, Tied: true, StoreTied: twice}))
		for _, run := range []string{"new", "settled"} {
			var made struct{ Sizes sizes }
			code, stdout, stderr := program(t, repo, "--push", "--json")
			if code != exitOK {
				t.Fatalf("%s: %s", repo, stderr)
			}
			world.Must(t, json.Unmarshal([]byte(stdout), &made))
			if before, again := of[twice]; again && before != made.Sizes {
				t.Errorf("%s: the %s run says %+v, the one before said %+v", repo, run, made.Sizes, before)
			}
			of[twice] = made.Sizes
		}
		var plan struct {
			Bytes int64 `json:"source_bytes"`
		}
		_, stdout, _ := program(t, "plan", repo, "--json")
		world.Must(t, json.Unmarshal([]byte(stdout), &plan))
		of[twice] = sizes{of[twice].BF16, of[twice].DF11, plan.Bytes}
	}
	once, twice := of[false], of[true]
	const matrix, header = 512 * 32 * 2, 200
	if twice.DF11 != once.DF11 || twice.BF16 < once.BF16 || twice.BF16 > once.BF16+header || twice.read < once.read+matrix {
		t.Errorf("stored once: %+v; stored twice: %+v", once, twice)
	}
}
