package pipeline

import (
	"bytes"
	"crypto/sha256"
	"encoding"
	"fmt"
	"hash"
	"sync"
)

// SourceError says that a source file is not what it should be: its sha256, or the part of it that an earlier run used.
type SourceError struct {
	File      string
	Want, Got string
	// End is 0 for the whole file, else the length of the prefix that differs from what an earlier run read.
	End int64
}

func (e *SourceError) Error() string {
	if e.End > 0 {
		return fmt.Sprintf("source file %s: its first %d bytes differ from those an earlier run read", e.File, e.End)
	}
	return fmt.Sprintf("source file %s: sha256 is %s, published is %s", e.File, e.Got, e.Want)
}

// fileState is what a run knows of one source file.
type fileState struct {
	index     int
	path      string
	size      int64
	want      string // published sha256, "" if there is none
	header    []byte // JSON that the plan was made from
	segs      []segment
	unchecked bool // only the wanted ranges are read, so the file's hash is not checked

	mu    sync.Mutex
	marks []mark // at the start of each segment, rising
	sum   string // of the whole file, once read
}

// mark is the state of the hash after off bytes.
type mark struct {
	off   int64
	state []byte
}

// resumeHash restores the hash of a checkpoint, or starts at 0 if it can't be used: bytes before it are wanted after all.
func resumeHash(cp Checkpoint, first int64) (hash.Hash, int64) {
	h := sha256.New()
	if len(cp.State) == 0 || cp.Offset > first {
		return h, 0
	}
	if h.(encoding.BinaryUnmarshaler).UnmarshalBinary(cp.State) != nil {
		return sha256.New(), 0
	}
	return h, cp.Offset
}

// finish checks the sum of the whole file.
func (fs *fileState) finish(sum string) error {
	if fs.want != "" && sum != fs.want {
		return &SourceError{File: fs.path, Want: fs.want, Got: sum}
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.sum = sum
	return nil
}

// pending tells whether some task still wants bytes of the file.
func (fs *fileState) pending(done func(*task) bool) bool { return fs.firstPending(done) < fs.size }

// firstPending is the offset of the first segment that an unfinished task wants, or the file's size.
func (fs *fileState) firstPending(done func(*task) bool) int64 {
	for _, s := range fs.segs {
		for _, d := range s.dst {
			if !done(d.task) {
				return s.off
			}
		}
	}
	return fs.size
}

// checkpoint is the file's state for the journal, given what is finished.
func (fs *fileState) checkpoint(done func(*task) bool) Checkpoint {
	first := fs.firstPending(done)
	fs.mu.Lock()
	defer fs.mu.Unlock()
	c := Checkpoint{File: fs.path}
	if fs.unchecked {
		return c
	}
	if first == fs.size && fs.sum != "" {
		c.Integrity, c.SHA256 = integrityStreamed, fs.sum
		return c
	}
	for _, m := range fs.marks {
		if m.off > first {
			break
		}
		c.Offset, c.State = m.off, m.state
	}
	return c
}

// HeaderError says that a source file does not begin with the header that the plan was made from, so that the plan may
// be wrong although the file's sha256 is right.
type HeaderError struct{ File string }

func (e *HeaderError) Error() string {
	return fmt.Sprintf("source file %s: its header is not the one that the plan was made from; it was read wrong or has changed", e.File)
}

// checkHeader compares what p, read at off, holds of the header.
func (fs *fileState) checkHeader(off int64, p []byte) error {
	const start = 8 // behind the length
	from, end := max(off, start), min(off+int64(len(p)), start+int64(len(fs.header)))
	if from < end && !bytes.Equal(p[from-off:end-off], fs.header[from-start:end-start]) {
		return &HeaderError{fs.path}
	}
	return nil
}

// mark records the hash's state before the segment at off.
func (fs *fileState) mark(off int64, h hash.Hash) {
	state, err := h.(encoding.BinaryMarshaler).MarshalBinary()
	if err != nil {
		return // no checkpoint here; a resume starts further ahead
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.marks = append(fs.marks, mark{off, state})
}
