// Package pipeline converts one model: it fetches, encodes, verifies, hashes and publishes, all at once and within
// budgets. It does not know flags, terminals or exit codes, and it holds no rule of the DF11 format.
//
// # Data flow
//
//	        ┌──────────── fetch (fetch.go) ─────────────┐
//	source ─┤ every weight file once, in order, through │
//	        │ sha256; its bytes dealt to their tasks    │
//	        └──┬───────────────────────┬────────────────┘
//	           ▼ spool (spool.go)      ▼ encoder.Counter: pass 1 is free
//	        task complete ─▶ convert (convert.go): pass 2 into the output file, then decode
//	                         the stored bytes again and compare all of them with the spool
//	           spool given back ◀──┤
//	                               ▼
//	                         seal: sha256 of the stored bytes, rename
//	                               ▼
//	                         publish (publish.go): upload, commit in batches, journal
//	after the last task:     finish (finish.go): index, copied files, card, manifest, and config.json last
//
// A task (task.go) is one output file: the units in it, and the tensors that are copied into it unchanged.
//
// # What bounds memory and disk
//
// No stage holds a tensor. The encoder and the verifier work in blocks, the fetcher in buffers of 1 MiB. A local source
// is its own spool; for a remote one a spool file is reserved in the disk budget before its first byte is asked for
// (budget.go), and plan time simulates the arrival of the tensors to know that this can never block for ever.
//
// # What a resume guarantees
//
// The ledger (ledger.go) records each finished output with its sha256, bound to the plan's digest, and for each source
// file a checkpoint: an offset that no unfinished task starts before, with the state of the file's sha256 there. A rerun
// reads the file from that offset on. A finished output whose source bytes lie behind the checkpoint carries the digest of
// the file's prefix that it saw, and the rerun compares it, as it compares bytes that a kept spool holds already. So
// "streamed" in the manifest means for every output that the very bytes it was made from belong to a file whose sha256 is
// the published one.
package pipeline
