// Package progress counts the work of a run while its stages do it, and tells how fast it moves. It
// draws nothing and starts no goroutine.
package progress

import (
	"encoding/json"
	"io"
	"slices"
	"sync/atomic"
	"time"
)

// Counters count a run's work. Its fields are written by the stages and may be read at any time.
type Counters struct {
	// Bytes of source weights: fetched (skipped ones included), encoded or copied, and verified.
	// Bytes of output uploaded.
	Fetched, Encoded, Verified, Uploaded atomic.Int64
	// Found are those bytes of Verified that an earlier run has verified.
	Found atomic.Int64
	// Outputs counts finished output files.
	Outputs atomic.Int64
	// Totals, known once the plan stands. OutputBytes is a guess for the outputs that are not
	// finished.
	SourceBytes, OutputBytes, OutputFiles atomic.Int64
	passes                                [nStages]atomic.Bool // what Expect was told
	phase                                 atomic.Value         // string
	meters                                [nStages]meter
}

// Stage is one stage of the pipeline.
type Stage int

// The stages, in the order in which bytes pass them. Hash is the sha256 of source files and of
// results.
const (
	Read Stage = iota
	Encode
	Verify
	Hash
	Upload
	nStages
)

func (s Stage) String() string {
	return [nStages]string{"read", "encode", "verify", "hash", "upload"}[s]
}

// meter counts one stage: the bytes that passed it, and the time that it worked or waited for its
// own resource, be that a core that is busy with another stage. Time that it waits for the stages
// beside it does not count.
type meter struct{ bytes, busy atomic.Int64 }

// Timed begins to measure one piece of a stage's work. Call the function that it returns with the
// bytes when it is done.
func (p *Counters) Timed(s Stage) func(nBytes int64) {
	start := time.Now()
	return func(nBytes int64) {
		p.Count(s, nBytes)
		p.meters[s].busy.Add(int64(time.Since(start)))
	}
}

// Count counts bytes of a stage whose time is not measured.
func (p *Counters) Count(s Stage, nBytes int64) { p.meters[s].bytes.Add(nBytes) }

// Total is what a stage has done so far. Busy adds up over parallel workers.
type Total struct {
	Stage string        `json:"stage"`
	Bytes int64         `json:"bytes"`
	Busy  time.Duration `json:"-"`
}

// MarshalJSON gives the time in seconds.
func (t Total) MarshalJSON() ([]byte, error) {
	type plain Total
	return json.Marshal(struct {
		plain
		Busy float64 `json:"busy_seconds"`
	}{plain(t), t.Busy.Seconds()})
}

// Expect names the stages that the run's bytes will pass. Without it that is Verify alone. Hash,
// which keeps up with the others, is no part of the work that is counted.
func (p *Counters) Expect(stages ...Stage) {
	for _, s := range stages {
		p.passes[s].Store(true)
	}
}

// Uploading counts the bytes that are read from an output of size bytes while it is sent. Call end
// when it is sent, or has failed: a piece that was sent twice counts once, and what came to nothing
// does not count.
func (p *Counters) Uploading(r io.ReaderAt, size int64) (counted io.ReaderAt, end func(sent bool)) {
	done, u := p.Timed(Upload), &upload{ReaderAt: r, p: p, size: size}
	return u, func(sent bool) {
		n := u.n.Load()
		if !sent {
			p.Uploaded.Add(-n)
			return
		}
		p.Uploaded.Add(size - n)
		done(size)
	}
}

// upload counts what is read, up to the size of the file.
type upload struct {
	io.ReaderAt
	p       *Counters
	size    int64
	n, more atomic.Int64 // bytes that were counted, and that were read
}

func (u *upload) ReadAt(b []byte, off int64) (int, error) {
	n, err := u.ReaderAt.ReadAt(b, off)
	if over := u.more.Add(int64(n)) - u.size; over < int64(n) {
		fresh := int64(n) - max(0, over)
		u.n.Add(fresh)
		u.p.Uploaded.Add(fresh)
	}
	return n, err
}

// Snapshot is one consistent-enough reading of the counters.
type Snapshot struct {
	Phase                                       string
	Fetched, Encoded, Verified, Uploaded, Found int64
	Outputs, OutputFiles                        int64
	SourceBytes, OutputBytes                    int64
	Stages                                      []Total // by Stage

	passes [nStages]bool
}

// Begun reports whether this run has done anything, and not only found what earlier ones have done.
func (s *Snapshot) Begun() bool {
	return s.Verified > s.Found || slices.ContainsFunc(s.Stages,
		func(t Total) bool { return t.Bytes > 0 })
}

// Work is what a stage has to do in all, and what of it is done, in bytes: Done is never more than
// All.
type Work struct {
	Stage     Stage
	Done, All int64
}

// Work lists the work of each stage that is expected, always in the same order.
func (s *Snapshot) Work() (list []Work) {
	for _, w := range []Work{
		{Read, s.Fetched, s.SourceBytes}, {Encode, s.Encoded, s.SourceBytes},
		{Verify, s.Verified, s.SourceBytes}, {Upload, s.Uploaded, s.OutputBytes},
	} {
		if s.passes[w.Stage] {
			w.Done = min(w.Done, w.All)
			list = append(list, w)
		}
	}
	return list
}

// Share is how much of all work is done, from 0 to 1: the mean of what has passed each of the
// stages that are expected.
func (s *Snapshot) Share() float64 {
	var sum, n float64
	for _, w := range s.Work() {
		if w.All > 0 {
			sum += float64(w.Done) / float64(w.All)
			n++
		}
	}
	if n == 0 {
		return 0
	}
	return sum / n
}

// Snapshot reads the counters.
func (p *Counters) Snapshot() Snapshot {
	phase, _ := p.phase.Load().(string)
	s := Snapshot{
		Phase: phase, Fetched: p.Fetched.Load(), Encoded: p.Encoded.Load(),
		Verified: p.Verified.Load(), Found: p.Found.Load(),
		Uploaded: p.Uploaded.Load(), Outputs: p.Outputs.Load(), OutputFiles: p.OutputFiles.Load(),
		SourceBytes: p.SourceBytes.Load(), OutputBytes: p.OutputBytes.Load(), Stages: p.Stages(),
	}
	for i := range s.passes {
		s.passes[i] = p.passes[i].Load()
	}
	if s.passes == [nStages]bool{} {
		s.passes[Verify] = true
	}
	return s
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
