// Package pipeline converts BF16 models losslessly to DFloat11, verifies DF11 models, and decodes
// them, as the command df11-convert does. It prints nothing. One call converts a model and publishes
// the result as YOU/Qwen3-8B-DF11:
//
//	report, err := pipeline.Convert(ctx, "Qwen/Qwen3-8B", pipeline.Options{Push: true})
//
// The zero options of each function do what the command does without flags. Tokens and the Hub's
// address come from the environment, as for the Python client, unless [Hubs] names them.
//
//	Plan     forecasts a conversion from headers and samples
//	Convert  converts a source into a folder, a repo, or both
//	Verify   compares a DF11 model with its original
//	Decode   writes the original files again
//	Inspect  measures a DF11 model
//	Status   says what a repo holds of a conversion
//
// A conversion streams. Weights go from the Hub to spools and are encoded by a pool of workers; each
// output is read back, compared with its source bits, uploaded, and committed:
//
//	Hub ─▶ spool ─▶ encode ─▶ compare on CPU and GPU ─▶ name ─▶ commit
//
//	Hub       internal/forward/fetch    Fetcher.Run: every source file once, in order, hashed
//	spool     internal/forward/spool    New: within the budgets of disk and memory
//	encode    internal/forward          unit: encoder.Unit.Encode, by an errgroup of workers
//	compare   internal/forward/compare  Comparer.Output: verify.Unit.Compare on the CPU, and
//	                                    verify.GPU.Compare if there is a GPU
//	name      internal/forward          name: the file gets its name once its journal is safe
//	commit    internal/publish          Remote.Commit, in batches; config.json comes last
//
// internal/convert decides around these stages: Open opens the targets, and Run.Convert makes what
// is missing, proves what earlier runs made, and finishes; its retry.go decides after a failed
// attempt. docs/design.md follows one tensor through all of it.
//
// Every error is an *[Error]. Test for its kind with errors.Is:
//
//	if errors.Is(err, pipeline.ErrNotConvertible) { … }
//
// Its hints name the flags of the command; the options have the same meaning.
//
// Stable are the six functions, their options, and the kinds of errors: the zero value of an option
// that is added later means what happens today. The JSON of reports is stable as docs/json.md says.
// The texts of errors, hints, and notices may change. The packages below internal may change at any
// time.
package pipeline
