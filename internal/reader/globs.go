package reader

import (
	"math"
	"path"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// A glob is a pattern of a .gitignore (https://git-scm.com/docs/gitignore). It matches bytes, as
// Git does: https://github.com/git/git/blob/v2.39.5/wildmatch.c
type glob struct {
	pattern string // without the slashes at its ends
	begins  int    // where its first special byte is
	base    bool   // it's compared with a file's name alone, because it has no slash
	folders bool   // it names folders only
	not     bool   // it's an exception
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

// parse reads a .gitignore. nil is a file that can't be read. It ignores everything, and so does
// one that's too long; then whole is false.
func (n *ignores) parse(text []byte) (g globs, whole bool) {
	all := globs{newGlob("*")}
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
		pattern, not := strings.CutPrefix(line, "!")
		x := newGlob(pattern)
		x.not = not
		g = append(g, x)
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

func newGlob(pattern string) glob {
	pattern, folders := strings.CutSuffix(pattern, "/")
	base := !strings.Contains(pattern, "/")
	pattern = strings.TrimPrefix(pattern, "/")
	begins := strings.IndexAny(pattern, `*?[\`)
	return glob{pattern: pattern, begins: max(begins, 0), base: base, folders: folders}
}

// Quote returns a pattern that matches a path alone.
func Quote(name string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(name)
}

// A steps counts the work that matching may still take: bytes of patterns, and places in paths.
type steps int

// maxSteps is how many steps matching takes for all files of a folder, which is about a second. The
// longest .gitignore with a thousand files takes a tenth of that, unless someone made it to take
// long.
const maxSteps steps = 1 << 28

// take takes steps, and reports whether there were enough.
func (s *steps) take(n int) bool {
	if *s >= 0 {
		*s -= steps(n)
	}
	return *s >= 0
}

// matches reports whether the pattern matches a path. fold is Git's setting core.ignorecase. Then
// the path has no capitals. Without enough steps, the answer means nothing.
func (g glob) matches(name string, fold bool, left *steps) bool {
	if g.base {
		name = path.Base(name)
	}
	at := []int{0} // the places in name where a match of the pattern's parts so far may end
	for i := 0; i < len(g.pattern); {
		part, n := g.part(i, fold)
		cost := n + len(at)
		if part.kind != oneByte {
			cost += len(name)
		}
		if at = part.from(at, name); len(at) == 0 || !left.take(cost) {
			return false
		}
		i += n
	}
	return at[len(at)-1] == len(name)
}

// A part is one of a pattern: a byte, a class, or stars.
type part struct {
	kind partKind
	in   set // for oneByte
}

type partKind int

const (
	oneByte   partKind = iota
	star               // any bytes except "/"
	starStar           // any bytes
	inFolders          // "**/": nothing, or any bytes up to a "/"
)

// part returns the part that begins at i, and its length. A part that no path matches is an empty
// set.
func (g glob) part(i int, fold bool) (p part, n int) {
	rest := g.pattern[i:]
	switch c := rest[0]; {
	case c == '*':
		return stars(rest, i == g.begins || g.pattern[i-1] == '/')
	case c == '?':
		p.in.addRange(0, 0xff, false)
		p.in.remove('/')
		return p, 1
	case c == '[':
		p.in, n = class(rest, fold)
		return p, n
	case c == '\\' && len(rest) == 1:
		return p, 1
	case c == '\\': // Git folds no case of such a byte
		p.in.add(rest[1])
		return p, 2
	case fold:
		p.in.add(lower(c))
		return p, 1
	default:
		p.in.add(c)
		return p, 1
	}
}

// stars returns the stars that a pattern begins with. begins says that the pattern or a folder's
// name begins there. Git looks at what follows a pattern's fixed begin as at a pattern of its own,
// so that x** crosses folders.
func stars(pattern string, begins bool) (p part, n int) {
	rest := strings.TrimLeft(pattern, "*")
	n = len(pattern) - len(rest)
	switch {
	case n == 1 || !begins:
		return part{kind: star}, n
	case strings.HasPrefix(rest, "/"):
		return part{kind: inFolders}, n + 1
	case rest == "", strings.HasPrefix(rest, `\/`):
		return part{kind: starStar}, n
	}
	return part{kind: star}, n
}

// from returns where matches of the part end that begin at these places, in order. It may reuse at.
func (p part) from(at []int, name string) (ends []int) {
	if p.kind == oneByte {
		ends = at[:0]
		for _, i := range at {
			if i < len(name) && p.in.has(name[i]) {
				ends = append(ends, i+1)
			}
		}
		return ends
	}
	open := false // a match that has begun may end at any place from here on
	for i := at[0]; i <= len(name); i++ {
		begins := len(at) > 0 && at[0] == i
		if begins {
			at = at[1:]
		}
		open = open || begins
		if open && p.kind != inFolders || begins || p.kind == inFolders && name[i-1] == '/' {
			ends = append(ends, i)
		}
		if p.kind == star && i < len(name) && name[i] == '/' {
			open = false
		}
	}
	return ends
}

// A set is a set of bytes.
type set [4]uint64

func (s *set) add(c byte)      { s[c/64] |= 1 << (c % 64) }
func (s *set) remove(c byte)   { s[c/64] &^= 1 << (c % 64) }
func (s *set) has(c byte) bool { return s[c/64]>>(c%64)&1 == 1 }

// addRange adds the bytes from low to high and, if it folds case, small letters whose capitals are
// among them.
func (s *set) addRange(low, high byte, fold bool) {
	for c := int(low); c <= int(high); c++ {
		s.add(byte(c))
		if fold {
			s.add(lower(byte(c)))
		}
	}
}

// class returns the bytes of the class that a pattern begins with, and its length. A class without
// an end, or with a name that Git doesn't know, has no bytes. No class has "/". Of single letters,
// Git compares the capitals with a path's small letters, so [A] matches nothing if it folds case.
func class(pattern string, fold bool) (in set, n int) {
	i := 1
	not := strings.HasPrefix(pattern[i:], "!") || strings.HasPrefix(pattern[i:], "^")
	if not {
		i++
	}
	// next returns the byte at i, or the one that a backslash there quotes
	next := func() (c byte, ok bool) {
		if i < len(pattern) && pattern[i] == '\\' {
			i++
		}
		if i >= len(pattern) {
			return 0, false
		}
		i++
		return pattern[i-1], true
	}
	var before byte // which a range may begin with; 0: none
	for first := true; first || !strings.HasPrefix(pattern[i:], "]"); first = false {
		rest := pattern[i:]
		if name, after, isName := className(rest); isName {
			if !in.addNamed(name, fold) {
				return set{}, len(pattern)
			}
			i, before = len(pattern)-len(after), 0
			continue
		}
		isRange := len(rest) > 1 && rest[0] == '-' && before != 0 && rest[1] != ']'
		if isRange {
			i++
		}
		c, ok := next()
		if !ok {
			return set{}, len(pattern)
		}
		if isRange {
			in.addRange(before, c, fold)
			before = 0
			continue
		}
		in.add(c)
		before = c
	}
	if not {
		for j := range in {
			in[j] = ^in[j]
		}
	}
	in.remove('/')
	return in, i + 1
}

// className returns the name in "[:name:]", with which a text begins, and what follows it.
func className(text string) (name, after string, ok bool) {
	text, ok = strings.CutPrefix(text, "[:")
	if !ok {
		return "", "", false
	}
	name, after, ok = strings.Cut(text, "]")
	if !ok { // Git finds no end of the class either
		return "", "", true
	}
	name, ok = strings.CutSuffix(name, ":")
	return name, after, ok
}

// addNamed adds the bytes of a class with a name, and reports whether there is one.
func (s *set) addNamed(name string, fold bool) bool {
	if fold && name == "upper" {
		name = "alpha"
	}
	ranges, ok := classes[name]
	for i := 0; i < len(ranges); i += 2 {
		s.addRange(ranges[i], ranges[i+1], false)
	}
	return ok
}

// classes are the named classes of bytes, each as pairs of a first byte and a last one.
var classes = map[string]string{
	"alnum": "09AZaz", "alpha": "AZaz", "blank": "\t\t  ", "cntrl": "\x00\x1f\x7f\x7f", "digit": "09",
	"graph": "!~", "lower": "az", "print": " ~", "punct": "!/:@[`{~", "space": "\t\r  ", "upper": "AZ",
	"xdigit": "09AFaf",
}

// lower returns the small letter of a capital of ASCII, and other bytes as they are.
func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// ignores reports whether Git may ignore a file, by its path: with core.ignorecase or without, and
// with the path as it is or, as on macOS, in the composed form of Unicode. If it takes too many
// steps to find out, it does.
func (g globs) ignores(name string, left *steps) bool {
	if len(g) == 0 {
		return false
	}
	for _, name := range slices.Compact([]string{name, norm.NFC.String(name)}) {
		if g.match(name, false, left) || g.match(lowered(name), true, left) || *left < 0 {
			return true
		}
	}
	return false
}

func lowered(name string) string {
	b := []byte(name)
	for i, c := range b {
		b[i] = lower(c)
	}
	return string(b)
}

// names reports whether a caller's patterns name a file or a folder above it.
func (g globs) names(name string) bool {
	left := steps(math.MaxInt)
	return g.match(name, false, &left)
}

// match reports whether the patterns name a file or a folder above it. Nothing below a named folder
// can be excepted.
func (g globs) match(name string, fold bool, left *steps) bool {
	if !left.take(len(name)) {
		return false
	}
	for i := range len(name) + 1 {
		isFile := i == len(name)
		if !isFile && name[i] != '/' {
			continue
		}
		for _, x := range slices.Backward(g) {
			if (!x.folders || !isFile) && x.matches(name[:i], fold, left) {
				if !x.not {
					return true
				}
				break
			}
			if !left.take(1) {
				return false
			}
		}
	}
	return false
}
