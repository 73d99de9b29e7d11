// Package wire sends requests to a Hugging Face Hub and to its storage hosts, and reads their
// refusals. It knows nothing about models, files, or commits.
//
// Every request of a client goes through one Transport, which has the retry loop, the redirect
// rules, and the token rule: the token goes to the hub's own scheme, host, and port, and to
// https://huggingface.co if the hub is a mirror that redirects there. It goes nowhere else. API
// answers count only from there, and no link leads from https to http. Signed URLs are used byte
// for byte and never shown. A Governor slows all workers of all clients at once. The comment of package
// hub lists the servers and clients that a branch is for.
package wire
