package ledger

import (
	"crypto/sha256"
	"encoding"
	"hash"
	"slices"
)

// AddCheckpoint records that reading of a file can go on at a point behind all earlier ones, or that nothing of the file is
// left to do.
func (l *Ledger) AddCheckpoint(c Checkpoint) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.putCheckpoint(c)
	return l.append(record{File: &c}.line())
}

// putCheckpoint keeps the checkpoints of a file rising. The lock is held.
func (l *Ledger) putCheckpoint(c Checkpoint) {
	if c.Integrity != "" {
		l.checkpoints[c.File] = []Checkpoint{c}
		return
	}
	before := l.checkpoints[c.File]
	for len(before) > 0 && (before[len(before)-1].Offset >= c.Offset || before[len(before)-1].Integrity != "") {
		before = before[:len(before)-1]
	}
	l.checkpoints[c.File] = append(before, c)
}

// Final gives the checkpoint of a file of which nothing is left to do; ok is false for any other.
func (l *Ledger) Final(file string) (c Checkpoint, ok bool) {
	c = l.Checkpoint(file, 1<<62)
	return c, c.Integrity != ""
}

// Checkpoint gives the last checkpoint of a file that is not behind an offset; a zero one if there is none. A final one is
// behind no offset.
func (l *Ledger) Checkpoint(file string, offset int64) Checkpoint {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range slices.Backward(l.checkpoints[file]) {
		if c.Offset <= offset {
			return c
		}
	}
	return Checkpoint{File: file}
}

// TrimCheckpoints forgets the checkpoints of a file behind an offset: bytes before them will be read again, and a hash of
// other bytes says nothing about these. The journal follows with the next Save.
func (l *Ledger) TrimCheckpoints(file string, offset int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.checkpoints[file] = slices.DeleteFunc(l.checkpoints[file], func(c Checkpoint) bool { return c.Offset > offset })
}

// ForgetFile forgets every checkpoint of a file.
func (l *Ledger) ForgetFile(file string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.checkpoints, file)
}

// Hash restores the hash at the last checkpoint that is not behind an offset, or starts at 0.
func (l *Ledger) Hash(file string, offset int64) (h hash.Hash, from int64) {
	h = sha256.New()
	if c := l.Checkpoint(file, offset); len(c.State) > 0 && h.(encoding.BinaryUnmarshaler).UnmarshalBinary(c.State) == nil {
		return h, c.Offset
	}
	return sha256.New(), 0
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
	for file, cs := range p.checkpoints {
		l.adoptCheckpoint(file, cs[len(cs)-1], theirs[file], ours[file])
	}
}

// adoptCheckpoint decides between the checkpoints of a file here and the one of the target's journal. theirs and ours say
// whether that side alone has an output of the file. The lock is held.
func (l *Ledger) adoptCheckpoint(file string, c Checkpoint, theirs, ours bool) {
	final := c.Integrity != ""
	ours = ours || l.holdsOf(file) && !final
	var last Checkpoint
	if cs := l.checkpoints[file]; len(cs) > 0 {
		last = cs[len(cs)-1]
	}
	switch {
	case ours && theirs:
		delete(l.checkpoints, file)
	case !ours && (final || theirs || c.Offset > last.Offset):
		l.checkpoints[file] = []Checkpoint{c}
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
