package main

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/df11-convert/df11-convert/internal/testing/world"
	"github.com/df11-convert/df11-convert/pipeline"
)

// TestPlannedDict checks that --pattern-dict takes the pattern dict of plan --json as it is.
func TestPlannedDict(t *testing.T) {
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "dict.json")
	llama(t, dir, "BF16", 0, "")
	var docs [2]struct {
		Dict  json.RawMessage `json:"pattern_dict"`
		Units []pipeline.PlannedUnit
	}
	world.Must(t, json.Unmarshal([]byte(must(t, "plan", dir, "--json")), &docs[0]))
	world.Write(t, file, docs[0].Dict)
	world.Must(t, json.Unmarshal([]byte(must(t, "plan", dir, "--json", "--pattern-dict", file)), &docs[1]))
	if len(docs[0].Units) == 0 || !reflect.DeepEqual(docs[0], docs[1]) {
		t.Errorf("%s, and then %s", docs[0].Dict, docs[1].Dict)
	}
}
