// Package metadata makes the small files of a DF11 repo: config.json, the manifest, the model card,
// and the index of the uncompressed rest. It's pure: bytes and facts in, bytes out. It reads no
// files and decides nothing about a conversion.
//
// The same input always makes the same bytes, so nothing in these files depends on the time, the
// machine, or the number of workers. config.json and the index follow docs/format.md §12, and the
// manifest follows docs/manifest.md.
package metadata
