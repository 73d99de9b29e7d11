package reader

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// A glob is a pattern of a .gitignore (https://git-scm.com/docs/gitignore). It ignores case, as some
// file systems do, because it keeps files private.
type glob struct {
	*regexp.Regexp // matches a whole path
	not, folders   bool
}

// globs are patterns of which the last match counts.
type globs []glob

// maxIgnore bounds the patterns of a .gitignore. One with more ignores everything.
const maxIgnore = 1_000

// parseIgnore reads a .gitignore.
func parseIgnore(text []byte) (g globs) {
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\r\n")
		for strings.HasSuffix(line, " ") && !strings.HasSuffix(line, `\ `) {
			line = line[:len(line)-1]
		}
		if line == "" || line[0] == '#' {
			continue
		}
		if len(g) == maxIgnore {
			return globs{newGlob("*")}
		}
		pattern, not := strings.CutPrefix(line, "!")
		x := newGlob(pattern)
		x.not = not
		g = append(g, x)
	}
	return g
}

// newGlob compiles a pattern.
func newGlob(pattern string) (g glob) {
	rest, folders := strings.CutSuffix(pattern, "/")
	g.folders = folders
	var b strings.Builder
	b.WriteString("(?is)^")
	if !strings.Contains(rest, "/") {
		b.WriteString("(?:.*/)?")
	}
	rest = strings.TrimPrefix(rest, "/")
	for rest != "" {
		var text string
		text, rest = nextOf(rest)
		b.WriteString(text)
	}
	var err error
	if g.Regexp, err = regexp.Compile(b.String() + "$"); err != nil { // a class such as [z-a]
		g.Regexp = regexp.MustCompile("(?i)^" + regexp.QuoteMeta(pattern) + "$")
	}
	return g
}

// nextOf returns the expression of a pattern's first part, and the rest.
func nextOf(pattern string) (text, rest string) {
	for special, text := range map[string]string{"**/": "(?:.*/)?", "/**/": "/(?:.*/)?"} {
		if rest, ok := strings.CutPrefix(pattern, special); ok {
			return text, rest
		}
	}
	switch c := pattern[0]; {
	case pattern == "/**":
		return "/.*", ""
	case c == '*':
		return "[^/]*", strings.TrimLeft(pattern, "*")
	case c == '?':
		return "[^/]", pattern[1:]
	case c == '[':
		if end := strings.IndexByte(pattern[min(2, len(pattern)):], ']'); end >= 0 {
			class := pattern[1 : end+2]
			if class[0] == '!' {
				class = "^" + class[1:]
			}
			return "[" + strings.NewReplacer(`\`, `\\`, "[", `\[`).Replace(class) + "]", pattern[end+3:]
		}
	case c == '\\' && len(pattern) > 1:
		return regexp.QuoteMeta(pattern[1:2]), pattern[2:]
	}
	return regexp.QuoteMeta(pattern[:1]), pattern[1:]
}

// match reports whether the patterns name a file or a folder above it. Nothing below a named folder
// can be excepted.
func (g globs) match(name string) bool {
	var above []string // the file, and the folders above it
	for p := name; p != "."; p = path.Dir(p) {
		above = append(above, p)
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
