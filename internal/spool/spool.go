// Package spool holds the source bytes of an output between the encoder's two passes: in memory, in a file, or where they
// already lie. It decides how much of disk and memory spools may take, but not what is fetched, nor when.
package spool

import (
	"fmt"
	"io"
	"os"

	"github.com/df11-convert/df11-convert/internal/atomicfile"
)

// A Spool is where the source bytes of one output wait. Offsets are those of spans.Output. Writes never overlap and may
// come from several goroutines.
type Spool interface {
	io.ReaderAt
	io.WriterAt
	// Release gives memory or disk back. The spool is not used afterwards. Release may be called twice.
	Release() error
}

// Temp is a temporary file. Where the system allows that it has no name, so that a killed process leaves nothing behind.
type Temp struct {
	*os.File
	remove func() error // nil once it has no name
}

// NewTemp makes an empty spool in dir.
func NewTemp(dir *os.Root) (*Temp, error) {
	name := atomicfile.TempName()
	f, err := dir.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("create spool: %w", err)
	}
	remove := func() error { return dir.Remove(name) }
	if remove() == nil {
		remove = nil
	}
	return &Temp{f, remove}, nil
}

// Release closes and removes the file.
func (s *Temp) Release() error {
	if err := s.Close(); err != nil {
		return ended(err)
	}
	if s.remove != nil {
		return s.remove()
	}
	return nil
}
