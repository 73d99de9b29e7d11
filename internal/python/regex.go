package python

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Compile returns a regex that matches as Python's re.fullmatch(pattern, path) does. It refuses any
// construct that published pattern dicts don't use, and names it. It also refuses a pattern that
// matches the empty path, which is the whole model.
func Compile(pattern string) (*regexp.Regexp, error) {
	// published patterns have about 50 bytes; the limit bounds the time to compile one
	const maxBytes = 8 << 10
	if len(pattern) > maxBytes {
		return nil, fmt.Errorf("pattern of %d bytes: more than %d", len(pattern), maxBytes)
	}
	expr, err := Translate(pattern)
	if err != nil {
		return nil, fmt.Errorf("pattern %q: %w", pattern, err)
	}
	// Compile it alone first, because an extra ")" would close the group of the frame below.
	re, err := regexp.Compile(expr)
	if err == nil {
		re, err = regexp.Compile(`\A(?:` + expr + `)\z`)
	}
	if err != nil {
		return nil, fmt.Errorf("pattern %q: not a regex that df11-convert can match: %w", pattern,
			err)
	}
	if named := slices.DeleteFunc(re.SubexpNames(), func(s string) bool { return s == "" }); len(named) >
		len(slices.Compact(slices.Sorted(slices.Values(named)))) {
		return nil, fmt.Errorf("pattern %q: two groups have the same name", pattern)
	}
	if re.MatchString("") {
		return nil, fmt.Errorf("pattern %q: matches the empty path, which is the whole model",
			pattern)
	}
	return re, nil
}

// Translate rewrites a Python regex in RE2 syntax. It refuses unknown elements. The compiler
// refuses known elements in a wrong place, such as a second quantifier.
func Translate(pattern string) (string, error) {
	// one published dict ends in \d++; there, \d+ matches the same paths
	if strings.HasSuffix(pattern, `\d++`) {
		pattern = strings.TrimSuffix(pattern, "+")
	}
	var expr strings.Builder
	w := walks{done: 1, branches: 1}
	for rest := pattern; rest != ""; {
		element := pyElement.FindString(rest)
		if element == "" || element == "(?" {
			return "", fmt.Errorf("the construct at %.20q isn't supported; patterns consist of "+
				"characters, \\., \\d, classes, groups, |, *, + and ?", rest)
		}
		if w.add(element); w.total() > maxWalks {
			return "", fmt.Errorf("it could take Python very long to match %.20q: repeat no "+
				"group, and use fewer of |, *, + and ?", rest)
		}
		expr.WriteString(pyDigits.Replace(element))
		rest = rest[len(element):]
	}
	return expr.String(), nil
}

// maxWalks allows four of * and + in a pattern.
const maxWalks = 1 << 20

// walks bounds in how many ways a pattern can match a path. Python tries them all before it says no,
// so a forged pattern could keep a loader busy for years.
type walks struct {
	done     int64  // by what this group follows
	branches int64  // of this group
	last     string // the last element
}

func (w *walks) add(element string) {
	switch element[0] {
	case '|':
		w.branches++
	case '(', ')':
		w.done, w.branches = w.total(), 1
	case '*', '+':
		w.done *= 32
		if w.last == ")" {
			w.done = maxWalks + 1
		}
	case '?':
		w.done *= 2
	}
	w.last = element
}

func (w *walks) total() int64 { return w.done * w.branches }

// pyElement matches the accepted element at the start of a pattern. Except for \d, Python and RE2
// read all of them the same way.
var pyElement = regexp.MustCompile(`^(?:` +
	`[^\\.\[\](){}|*+?^$]` + // a character
	`|\\[[:punct:]]` + // an escaped character
	`|\\d` + // a decimal digit of any script
	`|\.` + // any character but a line feed
	// a class of characters, ranges and digits
	`|\[\^?-?(?:[A-Za-z0-9_.](?:-[A-Za-z0-9_.])?|\\[[:punct:]]|\\d)+-?\]` +
	// groups and alternatives; "(?" is the start of any other group
	`|\((?:\?:|\?P<[A-Za-z_][A-Za-z0-9_]*>|\??)|\)|\|` +
	`|[*+?]\??)`) // a quantifier, greedy or lazy

// pyDigits replaces \d by what Python means: digits of any script, not only ASCII. An escaped
// backslash stays.
var pyDigits = strings.NewReplacer(`\\`, `\\`, `\d`, `\p{Nd}`)
