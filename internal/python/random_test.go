package python

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// judge is a Python program that reads patterns and paths. For each pattern it reports whether the
// pattern compiles, and which paths it matches in full.
const judge = `
import json, re, sys, warnings
warnings.simplefilter("ignore")
patterns, paths = json.load(sys.stdin)
def said(p):
    try:
        r = re.compile(p)
    except (re.error, OverflowError):
        return None
    return [i for i, path in enumerate(paths) if r.fullmatch(path)]
json.dump([said(p) for p in patterns], sys.stdout)`

// TestUnbalanced refuses parentheses that only our frame would balance.
func TestUnbalanced(t *testing.T) {
	for _, pattern := range []string{`model\.layers)(\.\d+`, `a)|(b`, `a)`, `(a`, `)(`, `a)(?:b`} {
		if _, err := Compile(pattern); err == nil {
			t.Errorf("%q is accepted, and Python refuses it", pattern)
		}
	}
}

// TestRandomPatterns compares random patterns with CPython's re. An accepted pattern compiles there
// and matches the same paths. DF11_DEEP=1 tries 60,000.
func TestRandomPatterns(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("NOT TESTED: there is no python3 to compare patterns with")
	}
	tries := 2000
	if os.Getenv("DF11_DEEP") != "" {
		tries = 60_000
	}
	rnd := rand.New(rand.NewPCG(11, 2504))
	pieces := []string{"a", "b", `\.`, `\d`, `\d+`, "1", "12", "(", ")", "(?:", "|", "*", "+", "?", "[0-9]",
		"[ab]", "[1-3]", ".", "lm_head", `model\.`, "layers", "[^a]"}
	paths := []string{"a", "b", "ab", "ba", "aa", "a.b", "a.1", "1", "12", "123", ".", "lm_head", "model.layers.1",
		"model.layers.12", "layers", "model.", "bb", "aab", "a1", "b12", "a.12", "1.1", "x", "a)", "(a", "layers1"}
	var patterns []string
	for len(patterns) < tries {
		var b strings.Builder
		for range 1 + rnd.IntN(8) {
			b.WriteString(pieces[rnd.IntN(len(pieces))])
		}
		patterns = append(patterns, b.String())
	}
	in, err := json.Marshal([]any{patterns, paths})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), python, "-c", judge)
	cmd.Stdin = strings.NewReader(string(in))
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var said [][]int
	if err := json.Unmarshal(out, &said); err != nil {
		t.Fatal(err)
	}
	accepted := 0
	for i, p := range patterns {
		re, err := Compile(p)
		if err != nil {
			continue
		}
		accepted++
		if said[i] == nil {
			t.Errorf("%q is accepted, and Python refuses it", p)
			continue
		}
		matched := map[int]bool{}
		for _, n := range said[i] {
			matched[n] = true
		}
		for n, path := range paths {
			if got := re.MatchString(path); got != matched[n] {
				t.Errorf("%q on %q: %v, Python says %v", p, path, got, matched[n])
			}
		}
	}
	if accepted < tries/20 {
		t.Errorf("only %d of %d patterns are accepted", accepted, tries)
	}
}
