package reader

import (
	"path"
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
	isPointer := func(name string) bool { return matches(known, name) && !matches(lfs, name) }
	return slices.Equal(lines, wanted) && slices.Contains(lfs, "*.safetensors") &&
		!slices.ContainsFunc(stored, isPointer)
}

// matches reports whether any of Git's patterns matches a path, as far as Hubs write patterns: a
// name or a path with wildcards, or all files below a folder.
func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		if folder, isDeep := strings.CutSuffix(p, "/**/*"); isDeep {
			return strings.HasPrefix(name, folder+"/")
		}
		of := name
		if !strings.Contains(p, "/") {
			of = path.Base(name)
		}
		ok, err := path.Match(strings.ReplaceAll(p, "[[:space:]]", " "), of)
		return ok && err == nil
	})
}

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
