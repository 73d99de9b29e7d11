// Package pipeline converts one model: it joins the stages that fetch, encode, verify, hash and publish, all at once and within
// budgets. It does not know flags, terminals or exit codes, and it holds no rule of the DF11 format.
//
//	            ┌──────────── fetch (internal/fetch) ────────────┐
//	source ────▶│ every weight file once, in order, through      │
//	            │ sha256; its bytes scattered to spools          │
//	            └──┬──────────────────────┬──────────────────────┘
//	               ▼ spool                ▼ encoder.Counter: pass 1
//	            task complete ─▶ convert (convert.go): pass 2 into the output file
//	                                 ▼
//	                             compare (compare.go): the stored bytes are decoded again and compared
//	               spool released ◀──┤  with the spool; their sha256 is made meanwhile
//	                                 ▼
//	                             finalize (finalize.go): fsync, rename, ledger
//	                                 ▼
//	                             publish (publish.go): upload, commit in batches
//	after the last output:       finish (finish.go): index, copied files, card, manifest, config.json last
//
// pipeline.go shows the whole way: an attempt (attempt.go) runs the stages, retry.go decides after a failed one. What is done is
// in one ledger (internal/ledger), which prepare.go reads from the targets, and resume.go squares with what is left in spools.
// decode.go goes the way back, from a DF11 model to the original files. What bounds memory and disk, and what a resume
// guarantees, is told in docs/design.md.
package pipeline
