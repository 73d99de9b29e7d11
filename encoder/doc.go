// Package encoder turns the BF16 weights of one unit into the six DF11 tensors, byte for byte as
// the official compressor does. It does no I/O of its own beyond the io.ReaderAt and io.WriterAt it
// is handed, and it knows no files, no tensor names and no models.
//
// Data flow, two passes over the same 2N bytes:
//
//	source ──pass 1──▶ Counter ──Finish──▶ Unit: codebook, LUTs, exact sizes
//	   │                                     │
//	   └──────────────pass 2, Unit.Encode────▶ six tensors at their offsets
//
// Both passes work on fixed blocks of elements. Pass 1 keeps one histogram per block, so that
// Finish knows the bit offset of every block; in pass 2 a block reads a few elements before its
// start to complete the octet of windows that it shares with the block before, and leaves its own
// last partial octet to the block behind. So blocks share nothing, every byte is written once, and
// the output is the same for every block size and worker count. Memory is workers × block buffers,
// which all units share, plus 1 KiB per block in pass 1 and 4 bytes per chunk in pass 2, 0.4 % of
// the unit at most.
//
// Limits of the format are *UnsupportedError: such a unit stays in BF16.
//
// Pass 1 is in counter.go, code and tables in huffman.go, limiter.go and lut.go, the places of
// blocks in unit.go, pass 2 in encode.go and block.go. The inner loops are a table of functions for
// each variant (loops.go); those of loops_go.go run everywhere and say plainly what the assembly
// does. go test ./encoder, once more with -tags noasm, compares every variant with the golden
// vectors of the official compressor and with a serial encoder (reference_test.go).
//
// The rules are numbered in docs/format.md; comments cite them as "§7".
package encoder
