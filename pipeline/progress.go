package pipeline

import (
	"sync/atomic"
	"time"
)

// Progress counts a run's work. Its fields are written by the stages and may be read at any time.
type Progress struct {
	// Bytes of source weights: fetched (skipped ones included), encoded or copied, and proved. Bytes of output uploaded.
	Fetched, Encoded, Verified, Uploaded atomic.Int64
	// Outputs counts finished output files.
	Outputs atomic.Int64
	// Totals, known once the plan stands.
	SourceBytes, OutputBytes, OutputFiles atomic.Int64
	phase                                 atomic.Value // string
	meters                                [nStages]meter
}

// Stage names a stage of the pipeline.
type Stage int

// The stages, in the order in which bytes pass them.
const (
	StageFetch Stage = iota
	StageEncode
	StageVerify
	StageHash
	StageUpload
	nStages
)

func (s Stage) String() string {
	return [nStages]string{"fetch", "encode", "verify", "hash", "upload"}[s]
}

// meter counts one stage: the bytes that passed it, and the time that it worked or waited for its own resource. Time
// that it waits for the stages beside it does not count.
type meter struct{ bytes, busy atomic.Int64 }

// timed measures one piece of a stage's work; the function that it returns is called with the bytes when it is done.
func (p *Progress) timed(s Stage) func(nBytes int64) {
	start := time.Now()
	return func(nBytes int64) {
		p.meters[s].bytes.Add(nBytes)
		p.meters[s].busy.Add(int64(time.Since(start)))
	}
}

// StageTotal is what a stage has done so far. Busy adds up over parallel workers.
type StageTotal struct {
	Stage string        `json:"stage"`
	Bytes int64         `json:"bytes"`
	Busy  time.Duration `json:"busy_ns"`
}

// Snapshot is one consistent-enough reading of a Progress.
type Snapshot struct {
	Phase                                string
	Fetched, Encoded, Verified, Uploaded int64
	Outputs, OutputFiles                 int64
	SourceBytes, OutputBytes             int64
	Stages                               []StageTotal // by Stage
}

// Snapshot reads the counters.
func (p *Progress) Snapshot() Snapshot {
	phase, _ := p.phase.Load().(string)
	return Snapshot{
		Phase: phase, Fetched: p.Fetched.Load(), Encoded: p.Encoded.Load(), Verified: p.Verified.Load(),
		Uploaded: p.Uploaded.Load(), Outputs: p.Outputs.Load(), OutputFiles: p.OutputFiles.Load(),
		SourceBytes: p.SourceBytes.Load(), OutputBytes: p.OutputBytes.Load(), Stages: p.stages(),
	}
}

func (p *Progress) stages() []StageTotal {
	var out []StageTotal
	for s := range nStages {
		m := &p.meters[s]
		out = append(out, StageTotal{s.String(), m.bytes.Load(), time.Duration(m.busy.Load())})
	}
	return out
}

// SetPhase names what the run is doing now: "read headers", "convert", "finish".
func (p *Progress) SetPhase(s string) { p.phase.Store(s) }
