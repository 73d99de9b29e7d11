// Package progress counts the work of a run while its stages do it, and measures how fast it moves.
// It draws nothing and starts no goroutine.
//
// The bars are drawn by schollz/progressbar (internal/terminal). Its rate and time left aren't used:
// a bar averages its last ten half seconds by the wall clock, waits included, or all since it began.
// A stage here works in bursts, because an upload waits for a whole file; the work of all stages
// together decides when a run ends; and what an earlier run has done must not count as speed. With the
// library's window, the time left of a model of few files is off by a factor of over 4, with ours by
// less than 2 (motion_test.go).
package progress

import (
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Counters count a run's work. The stages write the fields, and anyone may read them at any time.
type Counters struct {
	// Bytes of source weights: fetched (including skipped ones), encoded or copied, and verified;
	// and bytes of output uploaded.
	Fetched, Encoded, Verified, Uploaded atomic.Int64
	// Outputs counts finished output files, and Published those that a commit has put into the repo.
	Outputs, Published atomic.Int64
	// PublishedBytes counts the bytes of outputs that this run's commits put into the repo.
	PublishedBytes atomic.Int64
	// Totals, known once the plan is made. OutputBytes is an estimate for unfinished outputs.
	SourceBytes, OutputBytes, OutputFiles atomic.Int64
	passes                                [nStages]atomic.Bool // stages named to Expect
	phase                                 atomic.Value         // string
	meters                                [nStages]meter
	sending                               atomic.Int64 // outputs that are being uploaded
	unconfirmed                           atomic.Int64 // bytes of these that were read to be sent

	mu       sync.Mutex
	arriving map[*arrival]struct{}
}

// Stage is one stage of the pipeline.
type Stage int

// The stages, in the order in which bytes pass them. Hash is the SHA-256 of source files and
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
// own resource, even if another stage keeps that core busy. Time spent waiting for neighboring
// stages doesn't count.
type meter struct{ bytes, busy atomic.Int64 }

// perSecond returns the speed of one worker, or 0 if it isn't known.
func (m *meter) perSecond() float64 {
	if busy := m.busy.Load(); busy > 0 {
		return float64(m.bytes.Load()) / time.Duration(busy).Seconds()
	}
	return 0
}

// Timed starts to measure one piece of a stage's work. When it's done, call the returned function
// with the number of bytes.
func (p *Counters) Timed(s Stage) func(nBytes int64) {
	start := time.Now()
	return func(nBytes int64) {
		p.Count(s, nBytes)
		p.meters[s].busy.Add(int64(time.Since(start)))
	}
}

// Count counts bytes of a stage without measuring time.
func (p *Counters) Count(s Stage, nBytes int64) { p.meters[s].bytes.Add(nBytes) }

// Total is what a stage has done so far. Busy is summed over parallel workers.
type Total struct {
	Stage string
	Bytes int64
	Busy  time.Duration
}

// Expect names the stages that the run's bytes will pass in addition to Verify. Hash keeps up with the
// others, so it isn't part of the work that is counted.
func (p *Counters) Expect(stages ...Stage) {
	for _, s := range stages {
		p.passes[s].Store(true)
	}
}

// Arriving counts the bytes of a source stream as they arrive. Some streams fetch several ranges at
// once; their Arrived method returns how many bytes have arrived so far. For other streams, bytes
// count when they are read. With fetched, the bytes also count as Fetched. Call end when you stop
// reading; after that, bytes that were never read don't count.
func (p *Counters) Arriving(r io.Reader, fetched bool) (counted io.Reader, end func()) {
	a := &arrival{Reader: r, p: p, fetched: fetched}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.arriving == nil {
		p.arriving = map[*arrival]struct{}{}
	}
	p.arriving[a] = struct{}{}
	return a, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.arriving, a)
	}
}

// arrival is a stream that is being read.
type arrival struct {
	io.Reader
	p       *Counters
	fetched bool
	read    atomic.Int64
}

func (a *arrival) Read(b []byte) (int, error) {
	n, err := a.Reader.Read(b)
	a.read.Add(int64(n))
	a.p.Count(Read, int64(n))
	if a.fetched {
		a.p.Fetched.Add(int64(n))
	}
	return n, err
}

// fetched returns Fetched and how many bytes more have arrived, but aren't read yet.
func (p *Counters) fetched() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.Fetched.Load()
	for a := range p.arriving {
		if s, ok := a.Reader.(interface{ Arrived() int64 }); ok && a.fetched {
			n += max(0, s.Arrived()-a.read.Load())
		}
	}
	return n
}

// Uploading counts the bytes of an output of size bytes while they are read to be sent. Call end
// when the upload is done or has failed. A piece that is sent twice counts once, and a failed
// upload doesn't count as Uploaded.
func (p *Counters) Uploading(r io.ReaderAt, size int64) (counted io.ReaderAt, end func(sent bool)) {
	done, u := p.Timed(Upload), &upload{ReaderAt: r, p: p, size: size}
	p.sending.Add(1)
	return u, func(sent bool) {
		p.sending.Add(-1)
		n := min(u.read.Load(), size)
		p.unconfirmed.Add(-n)
		if !sent {
			p.Uploaded.Add(-n)
			return
		}
		p.Uploaded.Add(size - n)
		done(size - n)
	}
}

// upload counts what is read, up to the size of the file.
type upload struct {
	io.ReaderAt
	p    *Counters
	size int64
	read atomic.Int64
}

func (u *upload) ReadAt(b []byte, off int64) (int, error) {
	n, err := u.ReaderAt.ReadAt(b, off)
	now := u.read.Add(int64(n))
	fresh := min(now, u.size) - min(now-int64(n), u.size)
	u.p.Uploaded.Add(fresh)
	u.p.unconfirmed.Add(fresh)
	u.p.Count(Upload, fresh)
	return n, err
}

// Commit counts outputs of so many bytes that a commit of this run has put into the repo.
func (p *Counters) Commit(outputs, nBytes int64) {
	p.Published.Add(outputs)
	p.PublishedBytes.Add(nBytes)
}

// Begun reports whether this run has done more than find what earlier runs have done.
func (p *Counters) Begun() bool {
	return slices.ContainsFunc(p.Stages(), func(t Total) bool { return t.Bytes > 0 })
}

// Work is how many bytes a stage has to process, and how many it has processed. Done never exceeds
// All.
type Work struct {
	Stage     Stage
	Done, All int64
}

// Work lists the work of each expected stage, always in the same order.
func (p *Counters) Work() (list []Work) {
	source := p.SourceBytes.Load()
	for _, w := range []Work{
		{Read, p.fetched(), source}, {Encode, p.Encoded.Load(), source},
		{Verify, p.Verified.Load(), source}, {Upload, p.Uploaded.Load(), p.OutputBytes.Load()},
	} {
		if w.Stage == Verify || p.passes[w.Stage].Load() {
			w.Done = min(w.Done, w.All)
			list = append(list, w)
		}
	}
	return list
}

// Share returns how much of the work is done, from 0 to 1: the share of the expected stage that is
// furthest behind. All stages work at once, so that one decides when the run ends.
func (p *Counters) Share() float64 {
	if p.SourceBytes.Load() == 0 {
		return 0
	}
	share := 1.0
	for _, w := range p.Work() {
		if w.All > 0 {
			share = min(share, float64(w.Done)/float64(w.All))
		}
	}
	return share
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

// Phase returns what the run is doing now.
func (p *Counters) Phase() string {
	phase, _ := p.phase.Load().(string)
	return phase
}
