package plan

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// TestPythonRegexes compares with what CPython says about the same patterns. A pattern that RE2 cannot express may be
// refused, but what is accepted must match the same strings, and what Python refuses must be refused.
func TestPythonRegexes(t *testing.T) {
	var golden struct {
		Strings []string
		Cases   []struct {
			Pattern string
			Error   bool // Python does not compile it
			Empty   bool // it matches the empty string, which is refused as a pattern for modules
			Strings []string
			Matches []string
		}
	}
	if err := json.Unmarshal(readFile(t, "testdata/pyregex.json"), &golden); err != nil {
		t.Fatal(err)
	}
	accepted := 0
	for _, c := range golden.Cases {
		re, err := compilePython(c.Pattern)
		if err != nil {
			if !c.Error && !c.Empty && expressible(c.Pattern) {
				t.Errorf("%q is refused: %v", c.Pattern, err)
			}
			continue
		}
		if c.Error || c.Empty {
			t.Errorf("%q is accepted", c.Pattern)
			continue
		}
		accepted++
		strs := c.Strings
		if strs == nil {
			strs = golden.Strings
		}
		for _, s := range strs {
			if got, want := re.MatchString(s), slices.Contains(c.Matches, s); got != want {
				t.Errorf("%q on %q: got %v, Python says %v", c.Pattern, s, got, want)
			}
		}
	}
	if accepted < 150 {
		t.Errorf("only %d patterns were compared", accepted)
	}
}

// expressible says whether a pattern of the golden file has nothing in it that this package may refuse.
func expressible(pattern string) bool {
	for _, refused := range []string{"++", "*+", "?+", "}+", "(?", `\1`, `\W`, `\z`, `\N`, "$b"} {
		if strings.Contains(pattern, refused) {
			return false
		}
	}
	return true
}

// TestPossessive keeps possessive quantifiers where dropping them changes nothing, and refuses the others.
func TestPossessive(t *testing.T) {
	for pattern, ok := range map[string]bool{
		`encoder\.layers\.\d++`: true,
		`a\.\d++\.b`:            true,
		`[0-9]++[a-z]+`:         true,
		`\d++\d`:                false,
		`\w++x`:                 false,
		`\d++\.?\d`:             false,
		`(ab)++c`:               false,
		`(?i)a++B`:              false,
	} {
		if _, err := compilePython(pattern); (err == nil) != ok {
			t.Errorf("%q: %v", pattern, err)
		}
	}
}
