package python

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestPythonRegexes compares with what CPython does for the same patterns. A construct that
// published dicts don't use may be refused. But an accepted pattern must match the same strings,
// and a pattern that Python refuses must be refused.
func TestPythonRegexes(t *testing.T) {
	var golden struct {
		Strings []string
		Cases   []struct {
			Pattern string
			Error   bool // Python doesn't compile it
			Empty   bool // it matches the empty string, so it's refused as a pattern for modules
			Strings []string
			Matches []string
		}
	}
	data, err := os.ReadFile("testdata/pyregex.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &golden); err != nil {
		t.Fatal(err)
	}
	accepted := 0
	for _, c := range golden.Cases {
		re, err := Compile(c.Pattern)
		if err != nil {
			isSlow := strings.Contains(err.Error(), "very long") // TestSlowPatterns
			if !c.Error && !c.Empty && !isSlow && !unsupported.MatchString(strings.TrimSuffix(c.Pattern, `+`)) {
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
	if accepted < 200 {
		t.Errorf("only %d patterns were compared", accepted)
	}
}

// TestSlowPatterns checks that no pattern keeps Python busy: it tries all ways to match a path.
func TestSlowPatterns(t *testing.T) {
	for pattern, good := range map[string]bool{
		`(model\.)?layers\.\d+`: true, `.*layers.*self_attn.*q.*`: true, `(a|b)\.(c|d|e)\.\d+\.(x|y)?`: true, `a(\*|b)+?c`: false,
		`([a-z._0-9]+)+_tokens`: false, `((a)*)*b`: false, `(?:a|a)*b`: false, `.*.*.*.*.*x`: false,
		strings.Repeat(`[a-z]?`, 30) + "x": false, strings.Repeat(`(a|a)`, 30): false, strings.Repeat(`(|a|a)`, 30): false,
	} {
		if _, err := Compile(pattern); (err == nil) != good {
			t.Errorf("%q: %v", pattern, err)
		}
	}
}

// unsupported matches the constructs of the golden file that Python knows and this package refuses.
var unsupported = regexp.MustCompile(
	`\(\?[^:P]|\(\?P[^<]|[{}$]|(^|[^\[])\^|[*+?]\+|\\[0-9A-Zabce-z é]|\[[\[\]&à]|\[\^\]|\[--|\]b`)

// TestNumbers writes sets of numbers the way published dicts do; the result matches exactly these
// numbers.
func TestNumbers(t *testing.T) {
	seq := func(a, b int) (out []int) {
		for i := a; i <= b; i++ {
			out = append(out, i)
		}
		return out
	}
	for _, c := range []struct {
		nums []int
		want string
	}{
		{[]int{37}, `37`},
		{seq(0, 4), `[0-4]`},
		{seq(0, 36), `([0-9]|[1-2][0-9]|3[0-6])`},
		{[]int{3, 7, 11, 15, 19, 23}, `([37]|1[159]|23)`},
		{seq(1, 126), `([1-9]|[1-9][0-9]|1[0-1][0-9]|12[0-6])`},
		{[]int{0, 1, 2, 5, 7}, `[0-257]`},
		{seq(98, 101), `(9[8-9]|10[0-1])`},
	} {
		got := Numbers(c.nums)
		if got != c.want {
			t.Errorf("%v: got %s, want %s", c.nums, got, c.want)
		}
		re, err := Compile(got)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 1200 {
			if re.MatchString(fmt.Sprint(i)) != slices.Contains(c.nums, i) {
				t.Errorf("%s is wrong about %d", got, i)
			}
		}
	}
}
