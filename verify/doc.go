// Package verify checks that the six stored arrays of a DF11 unit decode to given BF16 weights, bit
// for bit. It writes no DF11, opens no files, and knows no model layout. It shares no decoding code
// with package encoder.
//
// [Open] checks everything that shows without decoding: sizes, lookup tables, output positions, and
// split positions. A [Unit] then decodes from the stored arrays alone, as the GPU kernel does
// (docs/format.md §9):
//
//	encoded_exponent ─┐
//	luts ─────────────┼─▶ codes of one chunk ─▶ exponents ─┐
//	gaps ─────────────┘        │                           ├─▶ BF16 ─▶ == source?
//	                           │       sign_mantissa ──────┘
//	                           └─▶ code starts ─▶ gaps again, output positions again ─▶ == stored?
//
// Chunks are independent, so workers take blocks of chunks. Memory is one block per worker, no
// matter how large the unit is. Input may be hostile. Every failure is an error with a position. No
// input makes a function hang or read outside its arrays.
//
// Contexts must not be nil. Other wrong arguments, such as a nil writer, are errors.
//
// Stable are all exported names, and that no input with a wrong bit passes Compare. Later versions may
// refuse more files in Open, and word reasons in other ways.
package verify
