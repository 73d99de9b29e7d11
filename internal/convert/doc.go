// Package convert converts, verifies and decodes models. There are two ways: forward, from a
// source to its outputs (internal/forward), and back, from outputs to the source files
// (internal/back). It knows no terminals or exit codes, and it holds no rule of the DF11 format.
//
// A conversion finds out what is done, goes forward for what is missing, and back for source files
// that no single pass has hashed:
//
//	open (prepare.go): what do the targets hold?  ─▶ one ledger
//	     ▼
//	take over (earlier.go): what has an earlier run verified that hasn't changed since?
//	     ▼
//	begin (prepare.go): from here on, the folder keeps a journal
//	     ▼
//	forward (internal/forward): fetch ─▶ spool ─▶ encode ─▶ compare ─▶ name ─▶ publish
//	     ▼
//	back (rebuild.go): files that were not hashed, rebuilt from their outputs
//	     ▼
//	finish (finish.go): copied files, index, card, manifest, config.json last
//
// run.go shows the whole way; retry.go decides after a failed attempt. Three nouns share the work:
// the job (job.go) is what was asked for, the targets (targets.go) are where it goes and what is
// done there, and the result (result.go) is what is written at the end. Each step is a function of
// a job and its targets.
//
// At level full, a verification (verify.go) goes forward without encoding. At level proof it goes
// back but writes no files, and a decoding (decode.go) goes back and writes them. docs/design.md
// explains the limits on memory and disk, and what a resume guarantees.
package convert
