package spool

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
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

// mappedFrom is the smallest size for which the system is asked for pages.
const mappedFrom = 1 << 20

// newMemory returns a spool in memory. Its contents are undefined until the first write.
func (r *Room) newMemory(size int64) (*Spool, error) {
	b, err := r.idle.take(size)
	if err != nil {
		return nil, fmt.Errorf("spool of %d bytes in memory: %w", size, err)
	}
	m := &memory{b}
	return &Spool{ReaderAt: m, WriterAt: m, end: func(bool) error {
		if m.b = nil; size >= mappedFrom {
			r.idle.put(b)
		}
		return nil
	}}, nil
}

// spare keeps released pages, because the first access to a page costs several times as much as
// copying into it. A new spool of the same size reuses the newest. Any other spool first frees as
// much as it takes, so idle pages never exceed the budget.
type spare struct {
	mu  sync.Mutex
	all [][]byte // at least mappedFrom bytes each, the last released last
}

func (s *spare) take(size int64) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch last := len(s.all) - 1; {
	case last >= 0 && int64(len(s.all[last])) == size:
		b := s.all[last]
		s.all = s.all[:last]
		return b, nil
	case size < mappedFrom:
		return make([]byte, size), s.free(min(1, len(s.all)))
	}
	if err := s.free(len(s.all)); err != nil {
		return nil, err
	}
	return newPages(size)
}

// put keeps the memory of a spool for the next one.
func (s *spare) put(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, b)
}

// free returns n pieces of idle memory to the system.
func (s *spare) free(n int) (err error) {
	for range n {
		last := len(s.all) - 1
		err = errors.Join(err, freePages(s.all[last]))
		s.all = s.all[:last]
	}
	return err
}
