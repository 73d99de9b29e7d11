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
func TilesShared(n int) int { return 128 + TableBytes + 32 + n }

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

// NeedsCUDA names the oldest CUDA version whose driver reads a PTX version; "" if it is not known.
func NeedsCUDA(major, minor int) string {
	known := map[string]string{
		"6.0": "9.0", "6.3": "10.0", "6.4": "10.1", "6.5": "10.2", "7.0": "11.0", "7.1": "11.1", "7.8": "11.8",
		"8.0": "12.0", "8.1": "12.1", "8.2": "12.2", "8.3": "12.3", "8.4": "12.4", "8.5": "12.5", "8.7": "12.8",
	}
	return known[fmt.Sprintf("%d.%d", major, minor)]
}

// HasEntry reports whether a PTX text has an entry point of this name.
func HasEntry(ptx, name string) bool {
	return strings.Contains(ptx, ".entry "+name+"(")
}
