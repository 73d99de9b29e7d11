package alloc

import (
	"bytes"
	"io"
)

// Memory is a test's source or destination in memory.
type Memory []byte

// ReadAt implements io.ReaderAt.
func (m Memory) ReadAt(p []byte, off int64) (int, error) {
	return bytes.NewReader(m).ReadAt(p, off)
}

// WriteAt implements io.WriterAt. The slice doesn't grow.
func (m Memory) WriteAt(p []byte, off int64) (int, error) {
	if off < 0 || off > int64(len(m)) || len(p) > len(m)-int(off) {
		return 0, io.ErrShortWrite
	}
	return copy(m[off:], p), nil
}
