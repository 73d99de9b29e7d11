// Package spool holds the source bytes of an output between the encoder's two passes: in memory, in
// a file, or where they already are. It limits how much disk and memory spools take. It decides
// neither what is fetched nor when.
package spool

import (
	"io"
	"sync"

	"github.com/df11-convert/df11-convert/internal/streams"
)

// A Spool is where the source bytes of one output wait. Offsets are those of spans.Output. Writes
// never overlap and may come from several goroutines. Release or Close ends a spool; ending it
// again does nothing.
type Spool struct {
	io.ReaderAt
	io.WriterAt
	// Kept: the spool is a file that outlives the process, so a later run on the same disk can
	// continue with it. The file alone proves nothing: the ledger lists which tensors are complete,
	// with their checksums.
	Kept bool

	ended sync.Once
	end   func(remove bool) error // nil: there is nothing to do
}

// Release frees the memory or disk.
func (s *Spool) Release() error { return s.finish(true) }

// Close closes a spool at the end of a run. A kept one stays for the next run; any other is
// deleted.
func (s *Spool) Close() error { return s.finish(!s.Kept) }

func (s *Spool) finish(remove bool) (err error) {
	s.ended.Do(func() {
		if s.end != nil {
			err = s.end(remove)
		}
	})
	return err
}

// InPlace returns a spool of bytes that exist already, in sections of local source files, one after
// the other. It ignores writes.
func InPlace(sections []*io.SectionReader) *Spool {
	s := inPlace{streams.Join(sections...)}
	return &Spool{ReaderAt: s, WriterAt: s}
}

type inPlace struct{ *streams.Joined }

// WriteAt does nothing, because the bytes are already there.
func (s inPlace) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }
