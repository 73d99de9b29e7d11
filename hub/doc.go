// Package hub reads models from a Hugging Face Hub and publishes models to it. It knows nothing about
// tensors and prints nothing. On disk it reads only the Python client's cache and token, and writes
// only a renewed token.
//
// One Client serves one hub with one token:
//
//	Info, Tree ──▶ FileRef ──▶ ReadFile    small files, whole, hash checked
//	                      ├──▶ ReadRange   a header, a sample
//	                      └──▶ Stream      bytes in order, ranges fetched ahead
//
//	WhoAmI, CheckAccess ─▶ CreateRepo ─▶ Upload (per file) ─▶ Op ─▶ Commit
//
// Package wire sends the requests. It has the rules for tokens, redirects, repeats, and waits.
// docs/design.md lists what is repeated above it.
//
// Errors are of type *Error around a sentinel such as ErrGated. Hint returns the next step in words.
//
// Stable are all exported names, and the sentinels that an error wraps. The texts of errors and hints
// may change, and so may how often a request is repeated.
package hub
