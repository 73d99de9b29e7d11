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
	// Failed says that an error has ended the call, so its work isn't done, whatever Share is.
	Failed bool
	// Elapsed counts from the end of planning. Left is an estimate, 0 if nothing is known.
	Elapsed, Left time.Duration
	// Files counts finished files with weights, FilesPublished those that a commit has put into the
	// repo, and FilesTotal all of them.
	Files, FilesPublished, FilesTotal int64
	// Bytes counts bytes of the source's weights that are verified, BytesTotal all of them. Read
	// counts bytes of weights that this call has read, and Published those that its commits put into
	// the repo.
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

// watch calls Progress until stop is called with the result, and then a last time. It calls nothing while there is
// nothing to do.
func (s *session) watch() (stop func(error)) {
	if s.Progress == nil {
		return func(error) {}
	}
	p := s.counters
	done, ended := make(chan error, 1), make(chan any, 1)
	go func() {
		// a panic of the caller's function is the caller's, who can't recover it on this goroutine
		defer func() { ended <- recover() }()
		t := time.NewTicker(lookEvery)
		defer t.Stop()
		m := progress.Motion{Counters: p, Began: time.Now()}
		failed := false
		for !m.Ended {
			select {
			case <-t.C:
			case err := <-done:
				m.Ended, failed = true, err != nil
			}
			m.Look(time.Now())
			if p.SourceBytes.Load() > 0 && (m.Ended || p.Begun()) {
				s.Progress(progressOf(&m, failed))
			}
		}
	}()
	return func(err error) {
		done <- err
		if r := <-ended; r != nil {
			panic(r)
		}
	}
}

func progressOf(m *progress.Motion, failed bool) Progress {
	source := m.SourceBytes.Load()
	p := Progress{Phase: m.Phase(), Share: m.Share, Begun: m.Begun(), Ended: m.Ended,
		Failed: failed, Elapsed: m.Elapsed(), Left: m.Left(), Files: m.Outputs.Load(),
		FilesPublished: m.Counters.Published.Load(), FilesTotal: m.OutputFiles.Load(),
		Bytes: min(m.Verified.Load(), source), BytesTotal: source,
		Read:      m.Counters.Stages()[progress.Read].Bytes,
		Published: m.PublishedBytes.Load()}
	for _, w := range m.Work {
		p.Stages = append(p.Stages, StageProgress{w.Stage.String(), w.Done, w.All})
	}
	return p
}
