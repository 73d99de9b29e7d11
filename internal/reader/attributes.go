package reader

import (
	"regexp"
	"slices"
	"strings"
)

// SameAttributes reports whether Git treats files alike with a model's .gitattributes and the
// original's. The model's may have more or fewer lines by which a Hub keeps large files in Git LFS.
// It must have those for safetensors files and for each of stored, the files that the Hub keeps
// there, unless the original has none for it either. Without them, files arrive as pointers.
func SameAttributes(got, original []byte, stored []string) bool {
	lines, lfs := attributes(got)
	wanted, known := attributes(original)
	isStored, wasStored := anyOf(lfs), anyOf(known)
	isPointer := func(name string) bool { return wasStored(name) && !isStored(name) }
	return slices.Equal(lines, wanted) && slices.Contains(lfs, "*.safetensors") &&
		!slices.ContainsFunc(stored, isPointer)
}

// anyOf returns a function that reports whether one of Git's patterns matches a path. A pattern
// without a slash matches in any folder.
func anyOf(patterns []string) func(name string) bool {
	var exprs []*regexp.Regexp
	for _, p := range patterns {
		if rooted := strings.TrimPrefix(p, "/"); strings.Contains(p, "/") {
			p = "/" + rooted
			if folder, isDeep := strings.CutSuffix(p, "/**"); isDeep {
				p = folder + "/**/*"
			}
		} else {
			p = "/**/" + p
		}
		if expr, err := regexp.Compile("^" + gitPattern.Replace(p) + "$"); err == nil {
			exprs = append(exprs, expr)
		}
	}
	return func(name string) bool {
		matches := func(e *regexp.Regexp) bool { return e.MatchString("/" + name) }
		return slices.ContainsFunc(exprs, matches)
	}
}

// gitPattern makes a regular expression of a pattern of Git that begins with a slash.
var gitPattern = strings.NewReplacer("/**/", "/(.*/)?", "*", "[^/]*", "?", "[^/]",
	"[[:space:]]", `\s`, "[!", "[^/", ".", `\.`, "+", `\+`, "(", `\(`, ")", `\)`, "{", `\{`,
	"}", `\}`, "|", `\|`, "^", `\^`, "$", `\$`)

// attributes returns the lines of a .gitattributes, and the patterns of the lines that a Hub adds.
func attributes(b []byte) (lines, lfs []string) {
	for line := range strings.Lines(string(b)) {
		switch f := strings.Fields(line); {
		case len(f) == 0 || strings.HasPrefix(f[0], "#"):
		case slices.Equal(f[1:], []string{"filter=lfs", "diff=lfs", "merge=lfs", "-text"}):
			lfs = append(lfs, f[0])
		default:
			lines = append(lines, strings.Join(f, " "))
		}
	}
	return lines, lfs
}
