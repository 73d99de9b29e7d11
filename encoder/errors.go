package encoder

// Reason names the limit of docs/format.md that keeps a unit out of DF11. Plans and manifests store
// the values, so they never change.
type Reason string

// The limits, with their sections in docs/format.md.
const (
	ReasonExponentRange Reason = "exponent_range" // §9.1: an exponent of 240 or more
	ReasonTooManyLUTs   Reason = "too_many_luts"  // §9.2: more than 18 LUT rows
	ReasonSharedMemory  Reason = "shared_memory"  // §9.3: more than 23,550 weights in a chunk
	ReasonOfficialCrash Reason = "official_crash" // §6: the official compressor stops
	ReasonTooLarge      Reason = "too_large"      // §9.4: N or B beyond 32-bit arithmetic
)

// UnsupportedError reports a valid unit that DF11 can't hold. The unit stays in BF16.
type UnsupportedError struct {
	Reason Reason
	Detail string // the measured value and the limit
}

// Error implements error.
func (e *UnsupportedError) Error() string {
	return "the weights cannot be held in DF11 (" + string(e.Reason) + "): " + e.Detail
}
