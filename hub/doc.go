// Package hub reads models from a Hugging Face Hub and publishes models to one. It knows nothing of tensors and prints
// nothing. On disk it reads only the cache of the Python client, and writes nothing.
//
// One Client serves one hub with one token:
//
//	Info, Tree ──▶ FileRef ──▶ ReadFile    small files, whole, hash checked
//	                      ├──▶ ReadRange   a header, a sample
//	                      └──▶ Stream      bytes in order, ranges fetched ahead
//
//	WhoAmI, CheckAccess ─▶ CreateRepo ─▶ Upload (per file) ─▶ Op ─▶ Commit
//
// Every request goes through one transport. It holds the retry loop of all requests, the redirect rules and the token
// rule: the token travels to the hub's own scheme, host and port, and to https://huggingface.co if the hub is a mirror that
// redirects there, but nowhere else. What the API says counts only from there, and no link leads from https to http. Signed
// URLs are used byte for byte and never shown. A Governor slows all workers of all clients at once.
//
// Three loops are outside of the transport, because the same request would not help: an upload asks for fresh links when its
// links have expired, ReadFile reads a file again whose bytes have the wrong hash, and the caller of Commit rebuilds a commit
// when its branch has moved.
//
// Errors are of type *Error around a sentinel such as ErrGated; Hint gives the next step in words.
//
// To read the code, begin with client.go (options), call.go (an API call) and transport.go (one request, hop by hop), then:
//
//	endpoint, publisher            where the token and a redirect may go; tokens by trusted publishing
//	retry, pause, governor, watch  what is repeated, waited for, slowed down, given up
//	ratelimit                      what an answer says about when to come back
//	info, tree, location           what a commit holds, and where its bytes can be had
//	read, stream, download         ranges on their way; slots bound them, peers replace slow ones, throttle limits their rate
//	repo, upload, lfs, parts       a target repo, and its files on their way
//	commit                         one commit of a branch, made exactly once
//	cache                          the cache that is shared with the Python client
//	errors, refusal, hint, local   what went wrong, and what to do
package hub
