// Package encoder turns the BF16 weights of one unit into the six DF11 tensors, byte for byte as
// the official compressor does. It reads and writes only through the io.ReaderAt and io.WriterAt
// that you pass in. It knows no files, tensor names, or models.
//
// It reads the same 2N bytes in two passes:
//
//	source ──pass 1──▶ Counter ──Finish──▶ Unit: codebook, LUTs, exact sizes
//	   │                                     │
//	   └──────────────pass 2, Unit.Encode────▶ six tensors at their offsets
//
// Both passes work on fixed blocks of elements. Pass 1 keeps one histogram per block, so Finish
// knows the bit offset of every block. Two neighboring blocks can meet inside an octet of windows.
// The later block writes that octet: it reads a few elements before its start, and the earlier
// block leaves out its last partial octet. So blocks share nothing, every byte is written once, and
// the output is the same for every block size and worker count. Memory is one set of block buffers
// per worker, shared by all units, plus 1 KiB per block in pass 1 and 4 bytes per chunk in pass 2,
// at most 0.4% of the unit.
//
// A unit that exceeds a limit of the format gives an [*UnsupportedError] and stays in BF16.
//
// Pass 1 is in counter.go, code and tables are in huffman.go, limiter.go, and lut.go, the offsets
// of blocks in unit.go, and pass 2 in encode.go and block.go. Each variant has its own inner loops
// (loops.go). Those in loops_go.go run everywhere and show plainly what the assembly does. go test
// ./encoder (run it again with -tags noasm) compares every variant with the golden vectors of the
// official compressor and with a serial encoder (internal/testing/plain).
//
// docs/format.md numbers the rules; comments cite them as "§7".
//
// Contexts must not be nil. Other wrong arguments, such as a nil writer, are errors.
//
// Stable are all exported names, the bytes that Encode writes, and the values of Reason. A Unit that
// one version refuses may be encoded by a later one.
package encoder
