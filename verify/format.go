package verify

import "slices"

// The constants of the format. Package encoder has its own on purpose, so that a mistake in one of
// them shows up as a mismatch.
const (
	windowBits   = 64             // docs/format.md §1: bits of the coded stream per GPU thread
	chunkWindows = 512            // docs/format.md §1: windows (threads) per GPU block
	chunkBytes   = 4096           // docs/format.md §1: bytes of the coded stream per chunk
	chunkBits    = chunkBytes * 8 // docs/format.md §1
	gapBits      = 5              // docs/format.md §7: bits per gap
	// docs/format.md §7: bytes of gaps per chunk, chunkWindows*gapBits/8
	gapBytes = 320
	rowBytes = 256 // docs/format.md §6: one lookup table
	// docs/format.md §6, §9: values from here up are jumps, not symbols
	jumpMin     = 240
	maxTables   = 256 - jumpMin + 1 // docs/format.md §9: table 0 and the tables that jumps can name
	maxLevels   = 4                 // docs/format.md §9: lookups per code
	maxCodeBits = 32                // docs/format.md §5
	maxElems    = 1<<31 - 1         // docs/format.md §9: N is a signed 32-bit number
	maxStream   = 1<<31 - 8192      // docs/format.md §9: B; thread index * 8 must not overflow
	// limits how much a hostile file can make us allocate; real units have a handful
	maxTensors = 1 << 16

	// docs/format.md §9: the kernel's 49,152 bytes of shared memory hold 512 counters, a position,
	// and the chunk's weights.
	maxChunkElems = (49152 - 512*4 - 4) / 2
)

// A unit's arrays are stored under these names, after the module's path (docs/format.md §8).
const (
	NameLUTs            = "luts"
	NameEncodedExponent = "encoded_exponent"
	NameSignMantissa    = "sign_mantissa"
	NameOutputPositions = "output_positions"
	NameGaps            = "gaps"
	NameSplitPositions  = "split_positions"
)

// ArrayNames lists the names of the six arrays.
func ArrayNames() []string { return slices.Clone(arrayNames[:]) }

var arrayNames = [...]string{NameLUTs, NameEncodedExponent, NameSignMantissa,
	NameOutputPositions, NameGaps, NameSplitPositions}
