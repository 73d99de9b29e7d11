// Package pipeline converts one model. It finds out what is done, goes forward for what is missing (internal/forward), rebuilds the
// source files that no single pass has hashed, and finishes. It does not know flags, terminals or exit codes, and it holds no rule of
// the DF11 format.
//
//	prepare (prepare.go): what do the targets hold?  ─▶ one ledger
//	     ▼
//	begin (attempt.go, resume.go): what is missing, within which budgets; kept spools
//	     ▼
//	forward (internal/forward): fetch ─▶ spool ─▶ encode ─▶ compare ─▶ name ─▶ publish
//	     ▼
//	back (prove.go): files that were not hashed, rebuilt from their outputs
//	     ▼
//	finish (finish.go): index, copied files, card, manifest, config.json last
//
// pipeline.go shows the whole way; retry.go decides after a failed attempt. decode.go goes the way back, from a DF11 model to the
// original files. What bounds memory and disk, and what a resume guarantees, is told in docs/design.md.
package pipeline
