package spool

import (
	"bytes"
	"fmt"
	"io"
)

// memory is outside the heap if the system allows that, because the garbage collector would free
// this much memory too late.
type memory struct{ b []byte }

func (m *memory) ReadAt(p []byte, off int64) (int, error) {
	return bytes.NewReader(m.b).ReadAt(p, off)
}

func (m *memory) WriteAt(p []byte, off int64) (int, error) {
	n := copy(m.b[off:], p)
	if n < len(p) {
		return n, io.ErrShortWrite
	}
	return n, nil
}

// newMemory returns a spool in memory. Its contents are undefined until the first write.
func newMemory(size int64) (*Spool, error) {
	pages, err := newPages(max(1, size)) // a system has no pages for 0 bytes
	if err != nil {
		return nil, fmt.Errorf("spool of %d bytes in memory: %w", size, err)
	}
	m := &memory{pages[:size]}
	return &Spool{ReaderAt: m, WriterAt: m, end: func(bool) error {
		m.b = nil
		return freePages(pages)
	}}, nil
}
