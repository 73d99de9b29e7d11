package pipeline

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sort"

	"github.com/df11-convert/df11-convert/internal/pagecache"
)

// A spool is where a task's source bytes wait between the encoder's two passes. Offsets are the task's own: the weights
// of its units first, then the tensors that are copied. Writes never overlap and may come from several goroutines.
type spool interface {
	io.ReaderAt
	io.WriterAt
	// Release gives the memory or disk back. The spool is not used afterwards. It may be called twice.
	Release() error
}

// fileSpool is a temporary file that has no name any more where the system allows that, so that a killed process leaves
// nothing behind.
type fileSpool struct {
	f    *os.File
	path string // "" once it is unlinked
}

// newFileSpool makes an empty spool in dir.
func newFileSpool(dir string) (*fileSpool, error) {
	f, err := os.CreateTemp(dir, "spool-*.tmp")
	if err != nil {
		return nil, fmt.Errorf("create spool: %w", err)
	}
	s := &fileSpool{f: f, path: f.Name()}
	if os.Remove(s.path) == nil {
		s.path = ""
	}
	return s, nil
}

func (s *fileSpool) ReadAt(p []byte, off int64) (int, error)  { return s.f.ReadAt(p, off) }
func (s *fileSpool) WriteAt(p []byte, off int64) (int, error) { return s.f.WriteAt(p, off) }

func (s *fileSpool) Release() error {
	if s.f == nil {
		return nil
	}
	err := s.f.Close()
	s.f = nil
	if s.path != "" {
		return os.Remove(s.path)
	}
	return err
}

// memSpool keeps the bytes in memory, outside the heap where the system lets it: the collector would be late to give so
// much back.
type memSpool struct {
	b    []byte
	free func([]byte) error
}

// mappedFrom is the least size for which the system is asked for pages.
const mappedFrom = 1 << 20

func newMemSpool(size int64) (*memSpool, error) {
	if size < mappedFrom {
		return &memSpool{make([]byte, size), func([]byte) error { return nil }}, nil
	}
	b, free, err := pages(size)
	if err != nil {
		return nil, fmt.Errorf("spool of %d bytes in memory: %w", size, err)
	}
	return &memSpool{b, free}, nil
}

func (s *memSpool) ReadAt(p []byte, off int64) (int, error) {
	if off >= int64(len(s.b)) {
		return 0, io.EOF
	}
	n := copy(p, s.b[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (s *memSpool) WriteAt(p []byte, off int64) (int, error) { return copy(s.b[off:], p), nil }

func (s *memSpool) Release() error {
	b := s.b
	if s.b = nil; b == nil {
		return nil
	}
	return s.free(b)
}

// extent says that length bytes at the task's offset at lie in r at offset off.
type extent struct {
	at, length int64
	r          io.ReaderAt
	off        int64
}

// spanSpool reads a task's bytes where they already are: in the local source files. Nothing is ever written to it.
type spanSpool struct{ extents []extent }

// newSpanSpool sorts the extents, which must be disjoint and without holes.
func newSpanSpool(extents []extent) *spanSpool {
	sort.Slice(extents, func(i, j int) bool { return extents[i].at < extents[j].at })
	return &spanSpool{extents}
}

func (s *spanSpool) ReadAt(p []byte, off int64) (int, error) {
	i := sort.Search(len(s.extents), func(i int) bool { return s.extents[i].at+s.extents[i].length > off })
	done := 0
	for ; done < len(p) && i < len(s.extents); i++ {
		e := s.extents[i]
		skip := off + int64(done) - e.at
		n := min(int64(len(p)-done), e.length-skip)
		m, err := e.r.ReadAt(p[done:done+int(n)], e.off+skip)
		done += m
		if int64(m) < n {
			return done, readError(err)
		}
	}
	if done < len(p) {
		return done, io.EOF
	}
	return done, nil
}

// passing is a spanSpool whose bytes leave the system's cache with it.
type passing struct{ *spanSpool }

func (s passing) Release() error {
	for _, e := range s.extents {
		pagecache.Drop(e.r, e.off, e.length)
	}
	return nil
}

// readError turns the end of a source file in the middle of a tensor into an error that says so.
func readError(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (s *spanSpool) WriteAt(p []byte, off int64) (int, error) { return len(p), nil }
func (s *spanSpool) Release() error                           { return nil }
