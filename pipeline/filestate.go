package pipeline

import (
	"bytes"
	"crypto/sha256"
	"encoding"
	"fmt"
	"hash"
	"slices"
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

	lastMark int64 // the reader's

	mu    sync.Mutex
	marks []mark // at the start of each segment and inside long ones, rising
	dealt int64  // how far the file was dealt out, which includes comparing with what earlier runs have left
	sum   string // of the whole file, once read
}

// mark is the state of the hash after off bytes.
type mark struct {
	off    int64
	state  []byte
	inside bool // a tensor
}

// Inside a long tensor there is a mark after each markBytes, as long as a kept spool may be no further: marksBehind.
const (
	markBytes   = 4 << 20
	marksBehind = 1 << 30
)

// resumeHash restores the hash of a checkpoint, the one that counts on kept spools if they are there, or starts at 0 if
// neither can be used: bytes before it are wanted after all.
func resumeHash(cp Checkpoint, first int64) (hash.Hash, int64) {
	for _, m := range []mark{{off: cp.KeptOffset, state: cp.KeptState}, {off: cp.Offset, state: cp.State}} {
		h := sha256.New()
		if len(m.state) > 0 && m.off <= first && h.(encoding.BinaryUnmarshaler).UnmarshalBinary(m.state) == nil {
			return h, m.off
		}
	}
	return sha256.New(), 0
}

// finish checks the sum of the whole file.
func (fs *fileState) finish(sum string) error {
	if fs.want != "" && sum != fs.want {
		return &SourceError{File: fs.path, Want: fs.want, Got: sum}
	}
	fs.know(sum)
	return nil
}

// dealtTo notes how far the file was dealt out.
func (fs *fileState) dealtTo(off int64) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.dealt = off
}

// know takes the sum of the whole file.
func (fs *fileState) know(sum string) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.sum = sum
}

// Ways to count what an unfinished task has of a tensor: nothing, what is in its spool, what a kill leaves of that. A
// complete task has more than any tensor, also when the converter has taken its spool away.
func nothing(*task, int64) int64        { return 0 }
func keptBytes(t *task, at int64) int64 { return t.holds.kept(at) }

func held(t *task, at int64) int64 {
	if t.left.Load() == 0 {
		return 1 << 60
	}
	return t.holds.held(at)
}

// firstPending is the offset of the first byte that an unfinished task wants and does not have, or the file's size.
func (fs *fileState) firstPending(done func(*task) bool, have func(t *task, at int64) int64) int64 {
	for _, s := range fs.segs {
		first := s.end
		for _, d := range s.dst {
			if !done(d.task) {
				first = min(first, s.at(d, have(d.task, d.at)))
			}
		}
		if first < s.end {
			return first
		}
	}
	return fs.size
}

// checkpointIn is the file's state for the journal of a ledger, which may be further than this run has come.
func (fs *fileState) checkpointIn(l *ledger) Checkpoint {
	before := l.file(fs.path)
	if before.Integrity == integrityProof && fs.firstPending(l.made, nothing) == fs.size {
		return before
	}
	now := fs.checkpoint(l.made)
	if now.Integrity != "" {
		return now
	}
	if now.Offset < before.Offset && before.Offset <= fs.firstPending(l.made, nothing) {
		now.Offset, now.State = before.Offset, before.State // this run has not come as far yet
	}
	if now.KeptOffset < before.KeptOffset && before.KeptOffset <= fs.firstPending(l.made, keptBytes) {
		now.KeptOffset, now.KeptState = before.KeptOffset, before.KeptState
	}
	return now
}

// checkpoint is the file's state for the journal, given what is finished.
func (fs *fileState) checkpoint(done func(*task) bool) Checkpoint {
	first, kept := fs.firstPending(done, nothing), fs.firstPending(done, keptBytes)
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
		if m.off > fs.dealt {
			break // the reader is ahead
		}
		if m.off <= first {
			c.Offset, c.State = m.off, m.state
		}
		if m.off <= kept {
			c.KeptOffset, c.KeptState = m.off, m.state
		}
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

// mark records the hash's state before the byte at off, which begins a segment or lies inside one.
func (fs *fileState) mark(off int64, h hash.Hash, inside bool) {
	state, err := h.(encoding.BinaryMarshaler).MarshalBinary()
	if err != nil {
		return // no checkpoint here; a resume starts further ahead
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.marks = append(slices.DeleteFunc(fs.marks, func(m mark) bool { return m.inside && m.off < off-marksBehind }), mark{off, state, inside})
	fs.lastMark = off
}
