package python

import (
	"encoding/json"
	"os"
	"testing"
)

// TestGrammar checks which patterns the program reads. packaging/df11 must read the same ones, and
// its test compares with the same file.
func TestGrammar(t *testing.T) {
	data, err := os.ReadFile("testdata/grammar.json")
	if err != nil {
		t.Fatal(err)
	}
	var accepted map[string]bool
	if err := json.Unmarshal(data, &accepted); err != nil {
		t.Fatal(err)
	}
	for pattern, want := range accepted {
		if _, err := Compile(pattern); (err == nil) != want {
			t.Errorf("%q: %v", pattern, err)
		}
	}
}
