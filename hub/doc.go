// Package hub reads models from a Hugging Face Hub and publishes models to it. It knows nothing
// about tensors and prints nothing. On disk it reads only the Python client's cache and token, and
// writes only a renewed token.
//
// One Client serves one hub with one token:
//
//	Info, Tree ──▶ FileRef ──▶ ReadFile    small files, whole, hash checked
//	                      ├──▶ ReadRange   a header, a sample
//	                      └──▶ Stream      bytes in order, ranges fetched ahead
//
//	WhoAmI, CheckAccess ─▶ CreateRepo ─▶ Upload (per file) ─▶ Op ─▶ Commit
//
// One transport sends all requests: transport.go. It has the rules for redirects (endpoint.go),
// repeats (retry.go), and waits (pause.go, governor.go), and ends dead connections (watch.go).
// docs/design.md lists what is repeated above it.
//
// The token goes to the hub's own scheme, host, and port, and to https://huggingface.co if the hub
// is a mirror that redirects there. It goes nowhere else. API answers count only from there, and no
// link leads from https to http. Signed URLs are used byte for byte and never shown.
//
// Errors are of type *Error around a sentinel such as ErrGated. Hint returns the next step in
// words.
//
// Comments name the servers and clients that a branch is for:
//
//   - hfd: https://github.com/matrixhub-ai/hfd, a server of git repos, at c4fdaa7
//   - KohakuHub: https://github.com/KohakuBlueleaf/KohakuHub at 2facb54
//   - olah: https://pypi.org/project/olah/0.5.4, a mirror for reading
//   - hf-mirror: https://hf-mirror.com, a mirror that, outside China, redirects to the public hub
//   - the Python client: https://github.com/huggingface/huggingface_hub at v2.4.0
//   - S3: https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html
//   - LFS: https://github.com/git-lfs/git-lfs/blob/main/docs/api/batch.md
//
// Stable are all exported names, and the sentinels that an error wraps. The texts of errors and
// hints may change, and so may how often a request is repeated.
package hub
