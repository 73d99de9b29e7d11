package metadata

import (
	"fmt"
	"strings"
	"testing"
)

// TestManyValues checks that a front matter with more values than any card has is refused before it's
// parsed, and that one below that is taken with each tag once.
func TestManyValues(t *testing.T) {
	for unit, n := range map[string]int{"- t%d\n": 70_000, "- {a%d: [b]}\n": 30_000, "- [[%d]]\n": 40_000} {
		var text strings.Builder
		for i := range n {
			fmt.Fprintf(&text, unit, i)
		}
		if _, err := ParseFrontMatter([]byte("---\ntags:\n" + text.String() + "---\n")); err == nil {
			t.Errorf("%d of %q are read", n, unit)
		}
	}
	var many []string
	for i := range 40_000 {
		many = append(many, fmt.Sprintf("t%d", i), fmt.Sprintf("T%d", i), "gguf", "DFloat11")
	}
	if got := cardTags(many); len(got) != len(ownTags)+40_000 || got[len(ownTags)] != "t0" {
		t.Errorf("%d tags", len(got))
	}
}
