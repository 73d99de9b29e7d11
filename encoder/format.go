package encoder

// Constants of the format (docs/format.md §1 and §9).
const (
	windowBits  = 64                           // §1: one GPU thread, 8 bytes
	chunkBits   = 512 * windowBits             // §1: one GPU block, 512 threads
	chunkBytes  = chunkBits / 8                // §1
	gapBytes    = 512 * 5 / 8                  // §7: 512 gaps of 5 bits per chunk
	maxCodeBits = 32                           // §5
	lutSlots    = 256                          // §6: one table is indexed by 8 bits
	firstJump   = 240                          // §9.1: values from here up are jumps
	maxLUTRows  = 256 - firstJump + 2          // §9.2: table 0, 16 more, the lengths
	maxElems    = 1<<31 - 1                    // §9.4
	maxCoded    = 1<<31 - 8192                 // §9.4: bytes of the coded stream
	maxShared   = 48 << 10                     // §9.3: bytes of GPU shared memory
	sharedBase  = 512*4 + 4                    // §9.3: bytes the kernel always takes
	maxPerChunk = (maxShared - sharedBase) / 2 // §9.3: 23,550 weights
)
