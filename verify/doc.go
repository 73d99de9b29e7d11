// Package verify checks that the six stored arrays of a DF11 unit decode to given BF16 weights, bit
// for bit. It writes no DF11, opens no files, knows no model layout and shares no decoding code
// with package encoder.
//
// [Open] looks at everything that can be judged without decoding: sizes, lookup tables, output
// positions, split positions. A [Unit] then decodes from the stored arrays alone, in the way the
// GPU kernel does (docs/format.md §9):
//
//	encoded_exponent ─┐
//	luts ─────────────┼─▶ codes of one chunk ─▶ exponents ─┐
//	gaps ─────────────┘        │                           ├─▶ BF16 ─▶ == source?
//	                           │       sign_mantissa ──────┘
//	                           └─▶ code starts ─▶ gaps again, output positions again ─▶ == stored?
//
// Chunks are independent, so workers take blocks of chunks. Memory is workers × one block,
// whatever the size of the unit. Input is treated as hostile: every failure is an error with a
// position, and no input makes a function hang or read outside its arrays.
package verify
