package encoder

import "io"

// Constants of the format, docs/format.md §1 and §9.
const (
	windowBits  = 64                           // §1: one GPU thread, 8 bytes
	chunkBits   = 512 * windowBits             // §1: one GPU block, 512 threads
	chunkBytes  = chunkBits / 8                // §1
	gapBytes    = 512 * 5 / 8                  // §7: 512 gaps of 5 bits per chunk
	maxCodeBits = 32                           // §5
	lutSlots    = 256                          // §6: one table is indexed by 8 bits
	firstJump   = 240                          // §9.1: values from here on are jumps
	maxLUTRows  = 256 - firstJump + 2          // §9.2: table 0, 16 more, the lengths
	maxElems    = 1<<31 - 1                    // §9.4
	maxCoded    = 1<<31 - 8192                 // §9.4: bytes of the coded stream
	maxShared   = 48 << 10                     // §9.3: bytes of GPU shared memory
	sharedBase  = 512*4 + 4                    // §9.3: what the kernel takes anyway
	maxPerChunk = (maxShared - sharedBase) / 2 // §9.3: 23,550 weights
)

// The last parts of the names under which a unit's tensors are stored, docs/format.md §8.
const (
	NameLUTs            = "luts"
	NameEncodedExponent = "encoded_exponent"
	NameSignMantissa    = "sign_mantissa"
	NameOutputPositions = "output_positions"
	NameGaps            = "gaps"
	NameSplitPositions  = "split_positions"
)

// StoredTensor describes one of the six tensors of a unit, docs/format.md §8.
type StoredTensor struct {
	Name   string  // NameLUTs and so on, without the module path
	DType  string  // safetensors dtype: "U8", or "I64" for split_positions
	Shape  []int64 // in elements of DType
	NBytes int64   // stored bytes; 0 for split_positions of a single tensor
}

// Dst receives the six tensors. Offset 0 of each writer is the first byte of that tensor; no byte
// is written twice and none beyond StoredTensor.NBytes. WriteAt must be safe for concurrent calls
// on ranges that do not overlap, as it is for *os.File. The bytes passed to it are borrowed until
// it returns.
type Dst struct {
	LUTs, EncodedExponent, SignMantissa, OutputPositions, Gaps, SplitPositions io.WriterAt
}
