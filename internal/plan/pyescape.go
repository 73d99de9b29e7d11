package plan

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// escape is one translated element of a regex.
type escape struct {
	text   string // in RE2 syntax
	kind   escapeKind
	nBytes int // length in the input
}

// escapeKind says what an escape matches.
type escapeKind int

const (
	character escapeKind = iota // one certain character
	category                    // one character of several
	border                      // no character
)

// pyEscape translates the escape at the start of rest.
func pyEscape(rest string, inClass bool) (escape, error) {
	r, size := utf8.DecodeRuneInString(rest[1:])
	if size == 0 {
		return escape{}, errors.New("the pattern ends in a backslash")
	}
	switch {
	case strings.ContainsRune("dDwWsS", r):
		return pyCategory(byte(r), inClass)
	case strings.ContainsRune("xuU0", r):
		return pyCodePoint(rest)
	case strings.ContainsRune("abfnrtv", r):
		return pyControl(byte(r), inClass), nil
	case strings.ContainsRune("ABZ", r) && !inClass:
		return escape{`\` + strings.Replace(string(r), "Z", "z", 1), border, 2}, nil
	case r >= '1' && r <= '9':
		return escape{}, fmt.Errorf("the backreference \\%c cannot be written in RE2", r)
	case r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z':
		return escape{}, fmt.Errorf("python knows no escape \\%c here", r)
	default:
		return escape{literal(rest[1 : 1+size]), character, 1 + size}, nil
	}
}

// Word and space characters as Python's str patterns know them, as members of an RE2 class.
const (
	pyWord  = `\p{L}\p{N}_`
	pySpace = `\t-\r\x1c- \x{85}\p{Z}`
)

// pyCategory translates \d, \w, \s and their opposites, which are Unicode categories in Python.
func pyCategory(c byte, inClass bool) (escape, error) {
	e := escape{kind: category, nBytes: 2}
	members := map[byte]string{'d': `\p{Nd}`, 'D': `\P{Nd}`, 'w': pyWord, 'W': pyWord, 's': pySpace, 'S': pySpace}[c]
	switch not := c == 'W' || c == 'S'; {
	case not && inClass:
		return e, fmt.Errorf("\\%c inside a class cannot be written in RE2", c)
	case not:
		e.text = "[^" + members + "]"
	case inClass:
		e.text = members
	default:
		e.text = "[" + members + "]"
	}
	return e, nil
}

// pyControl translates \a, \b, \f, \n, \r, \t and \v; \b is a backspace inside a class and a word border outside.
func pyControl(c byte, inClass bool) escape {
	switch {
	case c == 'b' && inClass:
		return escape{`\x08`, character, 2}
	case c == 'b':
		return escape{`\b`, border, 2}
	default:
		return escape{`\` + string(c), character, 2}
	}
}

// pyCodePoint translates \xhh, \uhhhh, \Uhhhhhhhh and the octal \0, \0o, \0oo.
func pyCodePoint(rest string) (escape, error) {
	m := codePoint.FindStringSubmatch(rest)
	if m == nil {
		return escape{}, fmt.Errorf("%.2s is not followed by enough digits", rest)
	}
	if m[2] != "" {
		return escape{`\` + m[2], character, len(m[0])}, nil
	}
	return escape{`\x{` + m[1][1:] + `}`, character, len(m[0])}, nil
}

// codePoint matches the numeric escapes of Python: hexadecimal in the first group, octal in the second.
var codePoint = regexp.MustCompile(`^\\(?:(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})|(0[0-7]{0,2}))`)
