// Package safetensors parses safetensors headers and lays out new files, byte for byte as the
// official crate does. It moves no tensor data: a [Header] says where to read and write it.
//
// Every header may be hostile. Lengths are checked against a limit and against the file before
// anything is allocated, and shapes are multiplied with overflow checks. Each defect has its own
// [Kind], in a [HeaderError] that names the tensor. For the rules of the format, see docs/format.md
// §11.
package safetensors
