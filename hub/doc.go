// Package hub reads models from a Hugging Face Hub and publishes models to one. It knows nothing of
// tensors and prints nothing. On disk it reads only the cache of the Python client, and writes
// nothing.
//
// One Client serves one hub with one token:
//
//	Info, Tree ──▶ FileRef ──▶ ReadFile    small files, whole, hash checked
//	                      ├──▶ ReadRange   a header, a sample
//	                      └──▶ Stream      bytes in order, ranges fetched ahead
//
//	WhoAmI, CheckAccess ─▶ CreateRepo ─▶ Upload (per file) ─▶ Op ─▶ Commit
//
// Package wire below sends the requests: it holds the rules for tokens, redirects, repeats and
// waits. What is repeated above it, docs/design.md lists.
//
// Errors are of type *Error around a sentinel such as ErrGated; Hint gives the next step in words.
package hub
