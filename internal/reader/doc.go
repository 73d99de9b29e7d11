// Package reader says what the programs that read a model do with it: which files they open or run,
// which pattern dict they use, and which modules they can fill. Its answers decide what is copied,
// what a verification compares and names first, and what a card may claim. It opens no files and
// sees no weights.
//
// The readers of a result are the official loader with transformers or diffusers (docs/format.md
// §13) and the ComfyUI node. Those of an original are transformers, diffusers and
// sentence-transformers. An [Original] says what a conversion does with each file. A [Use] says what
// a program may do with a file.
package reader
