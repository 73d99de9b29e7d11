package encoder

// Reason says which limit of docs/format.md keeps a unit from being held in
// DF11. The values are stable; they appear in plans and manifests.
type Reason string

// The limits, with their sections in docs/format.md.
const (
	ReasonExponentRange Reason = "exponent_range" // §9.1: an exponent of 240 or more
	ReasonTooManyLUTs   Reason = "too_many_luts"  // §9.2: more than 18 LUT rows
	ReasonSharedMemory  Reason = "shared_memory"  // §9.3: more than 23,550 weights in a chunk
	ReasonOfficialCrash Reason = "official_crash" // §6: the official compressor stops
	ReasonTooLarge      Reason = "too_large"      // §9.4: N or B beyond 32-bit arithmetic
)

// UnsupportedError reports a valid unit that DF11 cannot hold: it stays in BF16, and nobody is at
// fault.
type UnsupportedError struct {
	Reason Reason
	Detail string // the measured value and the limit
}

// Error implements error.
func (e *UnsupportedError) Error() string {
	return "the weights cannot be held in DF11 (" + string(e.Reason) + "): " + e.Detail
}
