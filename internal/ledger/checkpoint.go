package ledger

import (
	"crypto/sha256"
	"encoding"
	"hash"
	"math"
	"slices"

	"github.com/df11-convert/df11-convert/internal/metadata"
)

// Checkpoint is a point in a source file at which reading can go on: State is the marshaled sha256 after Offset bytes.
// Integrity is set once nothing of the file is left to do; SHA256 is then the sum of the whole file.
type Checkpoint struct {
	File      string             `json:"file"`
	Offset    int64              `json:"offset,omitempty"`
	State     []byte             `json:"state,omitempty"`
	Integrity metadata.Integrity `json:"integrity,omitempty"`
	SHA256    string             `json:"sha256,omitempty"`
}

// Hash restores the hash of a checkpoint and says where it is; one that cannot be restored is at 0.
func (c Checkpoint) Hash() (h hash.Hash, offset int64) {
	h = sha256.New()
	if len(c.State) > 0 && h.(encoding.BinaryUnmarshaler).UnmarshalBinary(c.State) == nil {
		return h, c.Offset
	}
	return sha256.New(), 0
}

// checkpoints are those of each source file, rising. A final one stands alone.
type checkpoints map[string][]Checkpoint

// put adds a checkpoint, which replaces those that are not before it.
func (m checkpoints) put(c Checkpoint) {
	before := m[c.File]
	for len(before) > 0 && (c.Integrity != "" || before[len(before)-1].Integrity != "" || before[len(before)-1].Offset >= c.Offset) {
		before = before[:len(before)-1]
	}
	m[c.File] = append(before, c)
}

// last gives the last checkpoint that is not behind an offset; a zero one if there is none.
func (m checkpoints) last(file string, offset int64) Checkpoint {
	for _, c := range slices.Backward(m[file]) {
		if c.Offset <= offset {
			return c
		}
	}
	return Checkpoint{File: file}
}

// AddCheckpoint records that reading of a file can go on at a point behind all earlier ones, or that nothing of the file is
// left to do.
func (l *Ledger) AddCheckpoint(c Checkpoint) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.checkpoints.put(c)
	return l.journal.append(record{File: &c}.line())
}

// Checkpoint gives the last checkpoint of a file that is not behind an offset; a zero one if there is none. A final one is
// behind no offset.
func (l *Ledger) Checkpoint(file string, offset int64) Checkpoint {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.checkpoints.last(file, offset)
}

// Final gives the checkpoint of a file of which nothing is left to do; ok is false for any other.
func (l *Ledger) Final(file string) (c Checkpoint, ok bool) {
	c = l.Checkpoint(file, 0)
	return c, c.Integrity != ""
}

// TrimCheckpoints forgets the checkpoints of a file behind an offset, all if that is negative: bytes before them will be read
// again, and a hash of other bytes says nothing about these. The journal follows with the next Save.
func (l *Ledger) TrimCheckpoints(file string, offset int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.checkpoints[file] = slices.DeleteFunc(l.checkpoints[file], func(c Checkpoint) bool { return c.Offset > offset })
}

// Adopt takes over what the journal of the target lists, perhaps of another machine: all of it is committed. The hash in a
// checkpoint covers what was made by the runs that led up to it and nothing else. So where each side has made something of a
// file that the other has not, no checkpoint of that file holds: it is read from its beginning and compared with all of it.
func (l *Ledger) Adopt(p *Ledger) {
	l.mu.Lock()
	defer l.mu.Unlock()
	theirs, ours := lacking(p, l), lacking(l, p)
	for path, o := range p.outputs {
		o.Place = Place{Committed: true}
		if mine, ok := l.outputs[path]; ok {
			if mine.SHA256 == o.SHA256 {
				mine.Committed = true
				o = mine
			} else if l.stays {
				continue
			}
		}
		l.outputs[path] = o
		delete(l.tensors, path)
	}
	if l.gpu == nil {
		l.gpu = p.gpu
	}
	if l.stays {
		return // what is made again here is read again
	}
	for file := range p.checkpoints {
		l.adoptCheckpoint(p.checkpoints.last(file, math.MaxInt64), theirs[file], ours[file])
	}
}

// adoptCheckpoint decides between the checkpoints of a file here and c of the target's journal. theirs and ours say whether
// that side alone has an output of the file. The lock is held.
func (l *Ledger) adoptCheckpoint(c Checkpoint, theirs, ours bool) {
	final := c.Integrity != ""
	ours = ours || l.holdsOf(c.File) && !final
	switch {
	case ours && theirs:
		delete(l.checkpoints, c.File)
	case !ours && (final || theirs || c.Offset > l.checkpoints.last(c.File, math.MaxInt64).Offset):
		l.checkpoints[c.File] = []Checkpoint{c}
	}
}

// lacking names the source files of outputs of a that b does not have.
func lacking(a, b *Ledger) map[string]bool {
	files := map[string]bool{}
	for path, o := range a.outputs {
		if x, ok := b.outputs[path]; ok && x.SHA256 == o.SHA256 {
			continue
		}
		for _, p := range o.Prefixes {
			files[p.File] = true
		}
	}
	return files
}

// holdsOf reports whether a kept spool has a tensor of a file under its hash. The lock is held.
func (l *Ledger) holdsOf(file string) bool {
	for _, ts := range l.tensors {
		if slices.ContainsFunc(ts, func(t Tensor) bool { return t.Prefix != nil && t.Prefix.File == file }) {
			return true
		}
	}
	return false
}
