package plan

import "fmt"

// Reason says in one word why a source is not convertible.
type Reason string

// Reasons of a [RefusedError].
const (
	ReasonAlreadyDF11 Reason = "already_df11"  // the source is a DF11 model
	ReasonQuantized   Reason = "quantized"     // FP8, MXFP4, GPTQ, AWQ, …
	ReasonNoWeights   Reason = "no_weights"    // no safetensors weights: pickles, GGUF, nothing
	ReasonWeights     Reason = "weights"       // index and weight files contradict each other
	ReasonConfig      Reason = "config"        // config.json cannot be read
	ReasonDType       Reason = "dtype"         // weights that are not BF16
	ReasonPattern     Reason = "pattern"       // the pattern dict does not fit the model
	ReasonTied        Reason = "tied"          // tied embeddings that contradict the tensors
	ReasonName        Reason = "name"          // a name that cannot become a file or a stored tensor
	ReasonFile        Reason = "file"          // a file that cannot be copied as it is
	ReasonLayout      Reason = "layout"        // the layout does not fit the source
	ReasonUnknown     Reason = "unknown_model" // no catalog entry and nothing to derive
	ReasonUnholdable  Reason = "unholdable"    // no unit at all that DF11 can hold
)

// RefusedError says that a source cannot be converted as asked; the command line exits with 5.
type RefusedError struct {
	Reason Reason
	Detail string // one sentence: what is wrong
	Hint   string // what to do or to use instead; may be empty
}

// Error returns the detail; the hint is left to the caller, who prints it on its own line.
func (e *RefusedError) Error() string { return e.Detail }

// refuse builds a RefusedError; the detail is formatted, the hint is taken as it is.
func refuse(r Reason, hint, format string, args ...any) error {
	return &RefusedError{Reason: r, Detail: fmt.Sprintf(format, args...), Hint: hint}
}
