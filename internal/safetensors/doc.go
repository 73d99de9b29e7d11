// Package safetensors parses safetensors headers and lays out new files, byte for byte as the
// official crate does. It moves no tensor data: a [Header] says where readers take bytes from and
// writers put them.
//
// Every header is treated as hostile. Lengths are checked against a limit and against the file
// before anything is allocated, shapes are multiplied with overflow checks, and each defect has its
// own [Kind], carried by a [HeaderError] that names the tensor. The rules of the format are in
// docs/format.md §11.
package safetensors
