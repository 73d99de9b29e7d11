// Package progress counts the work of a run while its stages do it. It draws nothing and starts no goroutine.
package progress

import (
	"sync/atomic"
	"time"
)

// Counters count a run's work. Its fields are written by the stages and may be read at any time.
type Counters struct {
	// Bytes of source weights: fetched (skipped ones included), encoded or copied, and proved. Bytes of output uploaded.
	Fetched, Encoded, Verified, Uploaded atomic.Int64
	// Outputs counts finished output files.
	Outputs atomic.Int64
	// Totals, known once the plan stands.
	SourceBytes, OutputBytes, OutputFiles atomic.Int64
	phase                                 atomic.Value // string
	meters                                [nStages]meter
}

// Stage is one stage of the pipeline.
type Stage int

// The stages, in the order in which bytes pass them.
const (
	Fetch Stage = iota
	Encode
	Verify
	Hash
	Upload
	nStages
)

func (s Stage) String() string {
	return [nStages]string{"fetch", "encode", "verify", "hash", "upload"}[s]
}

// meter counts one stage: the bytes that passed it, and the time that it worked or waited for its own resource. Time
// that it waits for the stages beside it does not count.
type meter struct{ bytes, busy atomic.Int64 }

// Timed begins to measure one piece of a stage's work. Call the function that it returns with the bytes when it is done.
func (p *Counters) Timed(s Stage) func(nBytes int64) {
	start := time.Now()
	return func(nBytes int64) {
		p.meters[s].bytes.Add(nBytes)
		p.meters[s].busy.Add(int64(time.Since(start)))
	}
}

// Total is what a stage has done so far. Busy adds up over parallel workers.
type Total struct {
	Stage string        `json:"stage"`
	Bytes int64         `json:"bytes"`
	Busy  time.Duration `json:"busy_ns"`
}

// Snapshot is one consistent-enough reading of the counters.
type Snapshot struct {
	Phase                                string
	Fetched, Encoded, Verified, Uploaded int64
	Outputs, OutputFiles                 int64
	SourceBytes, OutputBytes             int64
	Stages                               []Total // by Stage
}

// Snapshot reads the counters.
func (p *Counters) Snapshot() Snapshot {
	phase, _ := p.phase.Load().(string)
	return Snapshot{
		Phase: phase, Fetched: p.Fetched.Load(), Encoded: p.Encoded.Load(), Verified: p.Verified.Load(),
		Uploaded: p.Uploaded.Load(), Outputs: p.Outputs.Load(), OutputFiles: p.OutputFiles.Load(),
		SourceBytes: p.SourceBytes.Load(), OutputBytes: p.OutputBytes.Load(), Stages: p.Stages(),
	}
}

// Stages reads the counters of every stage.
func (p *Counters) Stages() []Total {
	var out []Total
	for s := range nStages {
		m := &p.meters[s]
		out = append(out, Total{s.String(), m.bytes.Load(), time.Duration(m.busy.Load())})
	}
	return out
}

// SetPhase names what the run is doing now: "read headers", "convert", "finish".
func (p *Counters) SetPhase(s string) { p.phase.Store(s) }
