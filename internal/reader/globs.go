package reader

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// A glob is a pattern of a .gitignore (https://git-scm.com/docs/gitignore), which matches bytes. It
// ignores case, as some file systems do, because it keeps files private. An exception (!) doesn't.
type glob struct {
	*regexp.Regexp // matches a whole path, as [latin1] spells it
	not, folders   bool
}

// globs are patterns of which the last match counts.
type globs []glob

// A .gitignore ignores everything if there are more patterns or bytes in it and the ones before it.
const (
	maxIgnore      = 1_000
	maxIgnoreBytes = 64 << 10
)

// An ignores reads the .gitignores of a folder, and counts what's in them.
type ignores struct{ patterns, bytes int }

// parse reads a .gitignore. A pattern in it that isn't surely understood matches all that it may
// mean, so no file is published that Git keeps back. nil is a file that can't be read. It ignores
// everything, and so does one that's too long; then whole is false.
func (n *ignores) parse(text []byte) (g globs, whole bool) {
	all := globs{newGlob("*", mayMean)}
	if n.bytes += len(text); text == nil || n.bytes > maxIgnoreBytes {
		return all, false
	}
	for line := range strings.Lines(strings.TrimPrefix(string(text), "\ufeff")) {
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		line, _, _ = strings.Cut(line, "\x00") // Git's strings end there
		if line = trimBlanks(line); line == "" || line[0] == '#' {
			continue
		}
		if n.patterns++; n.patterns > maxIgnore {
			return all, false
		}
		if pattern, not := strings.CutPrefix(line, "!"); not {
			x := newGlob(pattern, surelyMeans)
			x.not = true
			g = append(g, x)
			continue
		}
		g = append(g, newGlob(line, mayMean))
	}
	return g, true
}

// trimBlanks removes blanks at the end, except one after a backslash that isn't quoted itself.
func trimBlanks(line string) string {
	short := strings.TrimRight(line, " ")
	slashes := len(short) - len(strings.TrimRight(short, `\`))
	if short != line && slashes%2 == 1 {
		return short + " "
	}
	return short
}

// A reading says what becomes of a pattern whose meaning isn't sure.
type reading int

const (
	mayMean     reading = iota // it matches all that it may mean
	surelyMeans                // it matches nothing
)

// newGlob compiles a pattern.
func newGlob(pattern string, as reading) (g glob) {
	rest, folders := strings.CutSuffix(pattern, "/")
	g.folders = folders
	var b strings.Builder
	b.WriteString("(?s")
	if as == mayMean {
		b.WriteByte('i')
	}
	b.WriteString(")^")
	if !strings.Contains(rest, "/") {
		b.WriteString("(?:.*/)?")
	}
	rest = latin1(strings.TrimPrefix(rest, "/"))
	for begins, mayEnd := true, true; rest != ""; {
		text, after, sure := nextOf(rest, begins, mayEnd)
		mayEnd = mayEnd && text != openClass
		if !sure && as == surelyMeans {
			return glob{Regexp: nothing}
		}
		begins = strings.HasSuffix(rest[:len(rest)-len(after)], "/")
		b.WriteString(text)
		rest = after
	}
	g.Regexp = regexp.MustCompile(b.String() + "$")
	return g
}

// nothing matches no path.
var nothing = regexp.MustCompile(`[^\x{0}-\x{10ffff}]`)

// latin1 spells every byte of a text as one rune, because Git's "?" and classes match single bytes.
func latin1(text string) string {
	runes := make([]rune, len(text))
	for i := range runes {
		runes[i] = rune(text[i])
	}
	return string(runes)
}

// stars matches stars that cross folders.
var stars = regexp.MustCompile(`^(/?)\*\*+(/|\\/|$)`)

// openClass is the expression of a "[" that begins no class, because none ends after it.
const openClass = `\[`

// nextOf returns the expression of a pattern's first part, and the rest. begins says that the
// pattern or a folder's name begins there; mayEnd, that a class that begins there may have an end.
// Unless its meaning is sure, the expression matches all that it may mean.
func nextOf(pattern string, begins, mayEnd bool) (text, rest string, sure bool) {
	if m := stars.FindStringSubmatch(pattern); m != nil {
		rest = pattern[len(m[0]):]
		switch {
		case m[2] != "": // "**/" or "/**/". After another byte than "/", Git has them cross folders sometimes
			return m[1] + "(?:.*/)?", rest, begins || m[1] != ""
		case m[1] != "": // "/**" at the end
			return "/.*", rest, true
		}
	}
	switch c := pattern[0]; {
	case c == '*':
		return "[^/]*", strings.TrimLeft(pattern, "*"), true
	case c == '?':
		return "[^/]", pattern[1:], true
	case c == '[' && !mayEnd:
		return openClass, pattern[1:], false
	case c == '[':
		text, rest, ended := class(pattern[1:])
		switch {
		case ended:
			return text, rest, true
		case rest != "": // such as [[:alpha:]]
			return ".*", "", false
		}
		return openClass, pattern[1:], false
	case c == '\\' && len(pattern) > 1:
		pattern = pattern[1:]
	}
	_, size := utf8.DecodeRuneInString(pattern)
	return regexp.QuoteMeta(pattern[:size]), pattern[size:], true
}

// class returns the expression of a class that begins after "[", as Git reads it, and what follows
// it. It matches no "/". If the class has no end, the rest is "". If it has a name in it, the rest is
// what begins there.
func class(pattern string) (text, rest string, ended bool) {
	rest, not := pattern, strings.HasPrefix(pattern, "!") || strings.HasPrefix(pattern, "^")
	if not {
		rest = rest[1:]
	}
	next := func() rune { // the next byte, as latin1 spells it
		c, size := utf8.DecodeRuneInString(rest)
		rest = rest[size:]
		return c
	}
	var in [256]bool
	add := func(low, high rune) {
		for ; low <= high; low++ {
			in[low] = true
		}
	}
	var before rune // the byte that a range may begin with
	for first := true; rest != ""; first = false {
		after := rest
		c := next()
		switch {
		case c == ']' && !first:
			return anyOf(&in, !not), rest, true
		case c == '[' && strings.HasPrefix(rest, ":"):
			return "", after, false
		case c == '-' && before != 0 && rest != "" && rest[0] != ']':
			if c = next(); c == '\\' && rest != "" {
				c = next()
			}
			add(before, c)
			before = 0
			continue
		case c == '\\' && rest != "":
			c = next()
		}
		before = c
		add(before, before)
	}
	return "", "", false
}

// anyOf returns the expression of the bytes, except "/", that are in a class, or that aren't. The
// latter ignores no case: Git keeps V back for [^v].
func anyOf(in *[256]bool, are bool) string {
	var b strings.Builder
	flags := ""
	if !are {
		flags = "-i"
	}
	for c := 0; c < len(in); c++ {
		begin := c
		for c < len(in) && in[c] == are && c != '/' {
			c++
		}
		if c > begin {
			fmt.Fprintf(&b, `\x{%x}-\x{%x}`, begin, c-1)
		}
	}
	return "(?" + flags + ":[" + cmp.Or(b.String(), `^\x{0}-\x{10ffff}`) + "])"
}

// match reports whether the patterns name a file or a folder above it. Nothing below a named folder
// can be excepted.
func (g globs) match(name string) bool {
	var above []string // the file, and the folders above it
	for p := name; p != "."; p = path.Dir(p) {
		above = append(above, latin1(p))
	}
	for i, p := range slices.Backward(above) {
		for _, x := range slices.Backward(g) {
			if (!x.folders || i > 0) && x.MatchString(p) {
				if !x.not {
					return true
				}
				break
			}
		}
	}
	return false
}
