// Package metadata writes the small files of a DF11 repo: config.json, the manifest, the model card
// and the index of the uncompressed rest. It is pure: bytes and facts in, bytes out; it neither
// reads files nor decides anything about a conversion.
//
// The same input always gives the same bytes, so nothing in these files depends on the time, the
// machine or the number of workers. config.json and the index follow docs/format.md §12, the
// manifest docs/manifest.md.
package metadata
