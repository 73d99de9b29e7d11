package spool

import (
	"io"
	"sort"

	"github.com/df11-convert/df11-convert/internal/streams"
)

// Extent says that Length bytes at the spool offset At lie in R at offset Off.
type Extent struct {
	At, Length int64
	R          io.ReaderAt
	Off        int64
}

// InPlace reads an output's bytes where they already lie: in local source files. Writes to it are ignored.
type InPlace struct{ extents []Extent }

// NewInPlace takes extents that are disjoint and without holes, in any order.
func NewInPlace(extents []Extent) *InPlace {
	sort.Slice(extents, func(i, j int) bool { return extents[i].At < extents[j].At })
	return &InPlace{extents}
}

// ReadAt reads across extents.
func (s *InPlace) ReadAt(p []byte, off int64) (int, error) {
	i := sort.Search(len(s.extents), func(i int) bool { return s.extents[i].At+s.extents[i].Length > off })
	done := 0
	for ; done < len(p) && i < len(s.extents); i++ {
		e := s.extents[i]
		skip := off + int64(done) - e.At
		n := min(int64(len(p)-done), e.Length-skip)
		m, err := e.R.ReadAt(p[done:done+int(n)], e.Off+skip)
		done += m
		if int64(m) < n {
			return done, streams.Short(err)
		}
	}
	if done < len(p) {
		return done, io.EOF
	}
	return done, nil
}

// WriteAt does nothing: the bytes are there.
func (s *InPlace) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }

// Release does nothing: the files stay open.
func (s *InPlace) Release() error { return nil }
