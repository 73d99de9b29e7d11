package reader

import (
	"slices"
	"strings"
)

// SameAttributes reports whether Git treats files alike with a model's .gitattributes and the
// original's. The model's may have more lines, but only those by which a Hub keeps large files in
// Git LFS. It must have the line for safetensors files, which would otherwise arrive as pointers.
func SameAttributes(got, original []byte) bool {
	lines, lfs := attributes(got)
	wanted, _ := attributes(original)
	return slices.Equal(lines, wanted) && slices.Contains(lfs, "*.safetensors")
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
