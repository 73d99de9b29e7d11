package hubtest

import (
	"cmp"
	"fmt"
	"regexp/syntax"
	"slices"
	"strings"
)

// Expand returns strings that an RE2 regex matches, as module paths for a model. Repetitions stand
// for the given digits. It panics on syntax that patterns of module paths don't use.
func Expand(regex string, digits ...string) []string {
	re, err := syntax.Parse(regex, syntax.Perl)
	if err != nil {
		panic(fmt.Sprintf("hubtest: %v", err))
	}
	return expand(re, digits)
}

func expand(re *syntax.Regexp, digits []string) (out []string) {
	switch re.Op {
	case syntax.OpLiteral:
		return []string{string(re.Rune)}
	case syntax.OpPlus:
		return digits
	case syntax.OpAnyCharNotNL, syntax.OpAnyChar:
		return []string{"."}
	case syntax.OpCapture:
		return expand(re.Sub[0], digits)
	case syntax.OpAlternate:
		for _, s := range re.Sub {
			out = append(out, expand(s, digits)...)
		}
	case syntax.OpCharClass:
		for i := 0; i < len(re.Rune); i += 2 {
			for r := re.Rune[i]; r <= re.Rune[i+1]; r++ {
				out = append(out, string(r))
			}
		}
	case syntax.OpConcat:
		out = []string{""}
		for _, s := range re.Sub {
			var longer []string
			for _, head := range out {
				for _, tail := range expand(s, digits) {
					longer = append(longer, head+tail)
				}
			}
			out = longer
		}
	default:
		panic(fmt.Sprintf("hubtest: no expansion for %v in %v", re.Op, re))
	}
	return out
}

// CheckpointName returns the Hub's name for a module path of the loaded model, by a catalog entry's
// path renames. A rename is the start of the Hub's name, and the start of the path that replaces
// it. The longest start wins.
func CheckpointName(renames [][2]string, name string) string {
	renames = slices.Clone(renames)
	slices.SortStableFunc(renames,
		func(a, b [2]string) int { return cmp.Compare(len(b[1]), len(a[1])) })
	for _, r := range renames {
		if rest, ok := strings.CutPrefix(name, r[1]); ok {
			return r[0] + rest
		}
	}
	return name
}
