// Package hub reads models from a Hugging Face Hub and publishes models to
// one. It knows nothing of tensors, keeps no state on disk, and prints
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
// Every request goes through one transport, which holds the only retry loop
// of this module, the rate governor that slows all workers at once, the
// redirect rules and the token rule: the token travels to the hub's own
// scheme, host and port, and nowhere else. Signed URLs are used byte for byte
// and never shown.
//
// Errors are of type *Error around a sentinel such as ErrGated; Hint gives
// the next step in words.
package hub
