package pipeline

import "sync/atomic"

// Progress counts a run's work. Its fields are written by the stages and may be read at any time.
type Progress struct {
	// Bytes of source weights: fetched (skipped ones included), encoded or copied, and proved. Bytes of output uploaded.
	Fetched, Encoded, Verified, Uploaded atomic.Int64
	// Outputs counts finished output files.
	Outputs atomic.Int64
	// Totals, known once the plan stands.
	SourceBytes, OutputBytes, OutputFiles atomic.Int64
	phase                                 atomic.Value // string
}

// Snapshot is one consistent-enough reading of a Progress.
type Snapshot struct {
	Phase                                string
	Fetched, Encoded, Verified, Uploaded int64
	Outputs, OutputFiles                 int64
	SourceBytes, OutputBytes             int64
}

// Snapshot reads the counters.
func (p *Progress) Snapshot() Snapshot {
	phase, _ := p.phase.Load().(string)
	return Snapshot{
		Phase: phase, Fetched: p.Fetched.Load(), Encoded: p.Encoded.Load(), Verified: p.Verified.Load(),
		Uploaded: p.Uploaded.Load(), Outputs: p.Outputs.Load(), OutputFiles: p.OutputFiles.Load(),
		SourceBytes: p.SourceBytes.Load(), OutputBytes: p.OutputBytes.Load(),
	}
}

// SetPhase names what the run is doing now: "read headers", "convert", "finish".
func (p *Progress) SetPhase(s string) { p.phase.Store(s) }
