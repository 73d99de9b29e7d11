// Package kernel holds the GPU kernel that decodes DF11 units, as PTX text, and the sizes that its launches need.
// It does not talk to a GPU: package verify launches the kernel, and the tests here run it in an interpreter.
//
// decode.ptx is made from decode.cu by generate.sh; the hashes of the sources are on its first lines.
package kernel

import (
	_ "embed"
	"fmt"
	"regexp"
	"strings"
)

//go:embed decode.ptx
var text string

// PTX returns the kernel's text.
func PTX() string { return text }

// The entry points. Decode has the parameters and the launch of the official kernel's.
const (
	Decode      = "decode"
	BuildTables = "build_tables"
	DecodeTiles = "decode_tiles"
)

// Sizes of launches, and of the data that the entry points read and write.
const (
	Threads     = 512  // of a block of every entry point
	TileBytes   = 4096 // docs/format.md §1: bytes of the coded stream per tile
	TableBytes  = 4352 // output of BuildTables
	BuildShared = 1024 // bytes of dynamic shared memory of BuildTables
	Slack       = 16   // bytes that must be readable behind gaps: the official kernel reads one too many
)

// OfficialShared is the dynamic shared memory, in bytes, of Decode for chunks of at most n weights (docs/format.md §9).
func OfficialShared(n int) int { return Threads*4 + 4 + 2*n }

// TilesShared is the dynamic shared memory, in bytes, of DecodeTiles for chunks of at most n weights.
func TilesShared(n int) int { return 256 + TableBytes + 32 + n }

var versionLine = regexp.MustCompile(`(?m)^\.version\s+(\d+)\.(\d+)\s*$`)

// Version returns the PTX version that a text asks for, and false if it has none.
func Version(ptx string) (major, minor int, ok bool) {
	m := versionLine.FindStringSubmatch(ptx)
	if m == nil {
		return 0, 0, false
	}
	n, err := fmt.Sscan(m[1]+" "+m[2], &major, &minor)
	return major, minor, n == 2 && err == nil
}

var targetLine = regexp.MustCompile(`(?m)^\.target\s+sm_(\d+)(\d)\b`)

// Target returns the least compute capability that a text is made for, and false if it names none.
func Target(ptx string) (major, minor int, ok bool) {
	m := targetLine.FindStringSubmatch(ptx)
	if m == nil {
		return 0, 0, false
	}
	n, err := fmt.Sscan(m[1]+" "+m[2], &major, &minor)
	return major, minor, n == 2 && err == nil
}

// NeedsCUDA names the oldest CUDA version whose driver reads a PTX version, 11.0 at least, since the driver's functions that
// are used here are those of CUDA 11.0; "" if it is not known.
func NeedsCUDA(major, minor int) string {
	switch {
	case major == 6 && minor <= 5:
		return "11.0"
	case major == 8 && minor >= 6 && minor <= 8: // 12.6 came without a new PTX
		return fmt.Sprintf("12.%d", minor+1)
	case major >= 7 && minor <= 9:
		return fmt.Sprintf("%d.%d", major+4, minor)
	}
	return ""
}

// HasEntry reports whether a PTX text has an entry point of this name.
func HasEntry(ptx, name string) bool {
	return strings.Contains(ptx, ".entry "+name+"(")
}
