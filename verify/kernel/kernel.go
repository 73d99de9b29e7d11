// Package kernel holds the GPU kernel that decodes DF11 units, as PTX text, and the sizes that
// launches need. It doesn't use a GPU: package verify launches the kernel, and the tests here run
// it in an interpreter (internal/testing/ptx).
//
// generate.sh makes decode.ptx from decode.cu. The first lines of decode.ptx hold the SHA-256 of
// its sources.
package kernel

import _ "embed"

//go:embed decode.ptx
var text string

// PTX returns the kernel's text.
func PTX() string { return text }

// What the text requires. Every driver with the functions of CUDA 11.0 reads this version.
const (
	Version = "6.0"
	Target  = 70 // lowest compute capability, times 10
)

// The entry points of package verify and of the Python package df11.
const (
	BuildTables = "build_tables"
	DecodeTiles = "decode_tiles"
)

// DecodePicked is an entry point of df11 alone, for mixtures of experts. It decodes the tiles that
// have weights of picked experts.
const DecodePicked = "decode_picked"

// Decode is an entry point with the name, parameters, and launch of the official kernel. Nothing
// here launches it but tests. It's for the official loader (dfloat11 0.5.0) and the DFloat11 nodes
// of ComfyUI: they load one file, dfloat11/decode.ptx, which df11-convert kernel replaces with ours.
const Decode = "decode"

// Sizes of launches, and of the data that the entry points read and write.
const (
	Threads     = 512  // per block, for every entry point
	TileBytes   = 4096 // docs/format.md §1: bytes of the coded stream per tile
	TableBytes  = 4352 // output of BuildTables
	BuildShared = 1024 // bytes of dynamic shared memory of BuildTables
	// bytes that must be readable after gaps, because the official kernel reads one too many
	Slack = 16
)

// TilesShared returns how many bytes of dynamic shared memory DecodeTiles needs for chunks of at
// most n weights.
func TilesShared(n int) int { return 256 + TableBytes + 32 + n }
