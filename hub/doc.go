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
// To read the code, begin with client.go (options). Of the files that follow, each uses only those behind it:
//
//	environ, repo, commit         the environment; a target repo, and one commit of a branch, made exactly once
//	upload, parts, lfs, object    files on their way to a target
//	info, tree, read, stream      what a commit holds; ranges on their way
//	client, cache, download       options; the cache that is shared with the Python client; one range
//	peers, segment, location      slow connections; where bytes can be had
//	models, paths, turns          names and references; files that share a line
//	hint, new, call, retry        what to do; settings that are checked; a call, its repeats and waits
//	transport, watch, login       one request, hop by hop; what stalls; tokens by trusted publishing
//	settings, governor, throttle  what all clients share
//	refusal, errors, ratelimit    what an answer says
//	lanes, endpoint, request      where the token and a redirect may go
//	slots, pause, stats, faults, text, sentinels
package hub
