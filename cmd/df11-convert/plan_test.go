package main

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestPlanKeys pins the names that scripts read in plan --json. Empty optional members are left out.
func TestPlanKeys(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "m")
	for p, b := range models([]string{"tied"}).Files() {
		writeTo(t, filepath.Join(dir, p), b)
	}
	var doc struct {
		all, Estimate    map[string]any
		Units, Remainder []map[string]any
	}
	out := []byte(must(t, "plan", dir, "--json"))
	if err := json.Unmarshal(out, &doc); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, &doc.all); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		got  map[string]any
		want string
	}{
		{doc.all, "copied derived digest entry estimate layout loader not_copied output_bytes_estimate output_files pattern_dict " +
			"plain_bytes private provenance readers remainder source source_bytes source_files tied_embeddings unit_bytes units"},
		{doc.Estimate, "bandwidth_bytes_per_second download_seconds exact needs output_bytes push_seconds sampled_bytes samples upload_seconds"},
		{doc.Units[0], "bytes df11_bytes exact file path sampled_weights siblings tensors weights"},
		{doc.Remainder[0], "bytes dtype name shape why"},
	} {
		if got := strings.Join(slices.Sorted(maps.Keys(c.got)), " "); got != c.want {
			t.Errorf("members\n%s\nwant\n%s", got, c.want)
		}
	}
}
