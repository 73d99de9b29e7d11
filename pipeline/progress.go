package pipeline

import (
	"time"

	"github.com/df11-convert/df11-convert/internal/progress"
)

// A Progress is how far a call has come.
type Progress struct {
	Phase string  // what the call does now, such as "convert"
	Share float64 // of all work, 0 to 1
	Begun bool    // the call has done more than find what earlier ones have done
	Ended bool    // nothing more will be done, after an error too
	// Elapsed counts from the end of planning. Left is an estimate, 0 if nothing is known.
	Elapsed, Left time.Duration
	// Files counts finished files with weights, FilesTotal all of them.
	Files, FilesTotal int64
	// Bytes counts bytes of the source's weights that are verified, BytesTotal all of them. Read
	// and Published count bytes that this call moved.
	Bytes, BytesTotal, Read, Published int64
	// Stages are the stages that work at once, in the order in which bytes pass them.
	Stages []StageProgress
}

// A StageProgress is how many bytes a stage has processed, and how many it has to.
type StageProgress struct {
	Stage       string
	Done, Total int64
}

// lookEvery is how often progress is measured.
const lookEvery = 200 * time.Millisecond

// watch calls Progress until stop is called, and then a last time. It calls nothing while there is
// nothing to do.
func (s *session) watch() (stop func()) {
	if s.Progress == nil {
		return func() {}
	}
	p := s.counters
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		t := time.NewTicker(lookEvery)
		defer t.Stop()
		m := progress.Motion{Counters: p, Began: time.Now()}
		for !m.Ended {
			select {
			case <-t.C:
			case <-done:
				m.Ended = true
			}
			m.Look(time.Now())
			if p.SourceBytes.Load() > 0 && (m.Ended || p.Begun()) {
				s.Progress(progressOf(&m))
			}
		}
	}()
	return func() { close(done); <-ended }
}

func progressOf(m *progress.Motion) Progress {
	source := m.SourceBytes.Load()
	p := Progress{Phase: m.Phase(), Share: m.Share, Begun: m.Begun(), Ended: m.Ended,
		Elapsed: m.Elapsed(), Left: m.Left(), Files: m.Outputs.Load(), FilesTotal: m.OutputFiles.Load(),
		Bytes: min(m.Verified.Load(), source), BytesTotal: source, Read: m.Fetched.Load(),
		Published: m.Counters.Stages()[progress.Upload].Bytes}
	for _, w := range m.Work {
		p.Stages = append(p.Stages, StageProgress{w.Stage.String(), w.Done, w.All})
	}
	return p
}
