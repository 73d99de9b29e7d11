// Package wire sends requests to a Hugging Face Hub and to the storage hosts that it names, and
// reads their refusals. It knows nothing of models, files or commits.
//
// Every request of a client goes through one Transport. It holds the retry loop, the redirect rules
// and the token rule: the token travels to the hub's own scheme, host and port, and to
// https://huggingface.co if the hub is a mirror that redirects there, but nowhere else. What the
// API says counts only from there, and no link leads from https to http. Signed URLs are used byte
// for byte and never shown. A Governor slows all workers of all clients at once.
package wire
