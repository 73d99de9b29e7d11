package pipeline

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/df11-convert/df11-convert/internal/atomicfile"
)

// spoolVersion changes when older records can't be read any more; their spools are then deleted.
const spoolVersion = 2

// Names of kept spools in a store's state folder: data, record and note of one task differ only at the end.
const (
	spoolPrefix = "spool-"
	spoolData   = ".data"
	spoolRecord = ".json"
	spoolNote   = ".note"
)

// A keptSpool is a spool file that a later run on the same disk goes on with. A record beside it tells which bytes are
// on disk. A note is a record of bytes that may not be there yet: it outlives the process but not the machine. What
// neither names is not believed, and what they name only with the right checksum.
type keptSpool struct {
	f    *os.File
	path string // without its end

	mu   sync.Mutex // syncing, closing and deleting
	done bool       // closed or deleted

	noting sync.Mutex // apart from mu, since syncing takes long
	gone   bool
}

// heldRun says that the first N bytes of the tensor at spool offset At are there, and their CRC-32C.
type heldRun struct {
	At  int64  `json:"at"`
	N   int64  `json:"n"`
	CRC uint32 `json:"crc"`
}

// spoolState is the stored form of a record. Plan binds it to the source's commit and etags.
type spoolState struct {
	Version  int       `json:"version"`
	Plan     string    `json:"plan"`
	Output   string    `json:"output"`
	Size     int64     `json:"size"`
	Runs     []heldRun `json:"runs"`
	Prefixes []Prefix  `json:"prefixes,omitempty"`
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// spoolPath is where a task's kept spool lies, without its end.
func spoolPath(state string, t *task) string {
	sum := sha256.Sum256([]byte(t.path))
	return filepath.Join(state, spoolPrefix+hex.EncodeToString(sum[:8]))
}

// newKeptSpool begins an empty spool, or with old opens one that is there.
func newKeptSpool(path string, old bool) (*keptSpool, error) {
	flags := os.O_RDWR
	if !old {
		flags |= os.O_CREATE | os.O_TRUNC
		if err := removeSpool(path); err != nil {
			return nil, fmt.Errorf("create spool: %w", err)
		}
	}
	f, err := os.OpenFile(path+spoolData, flags, 0o666)
	if err != nil {
		return nil, fmt.Errorf("open spool: %w", err)
	}
	return &keptSpool{f: f, path: path}, nil
}

func (s *keptSpool) ReadAt(p []byte, off int64) (int, error)  { return s.f.ReadAt(p, off) }
func (s *keptSpool) WriteAt(p []byte, off int64) (int, error) { return s.f.WriteAt(p, off) }

// save puts on disk first the bytes, then the record that names them. All of them must have been written before the
// call. It tells whether the spool was still there.
func (s *keptSpool) save(r spoolState) (saved bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done {
		return false, nil
	}
	if err := s.f.Sync(); err != nil {
		return false, fmt.Errorf("sync spool: %w", err)
	}
	return true, atomicfile.WriteFile(s.path+spoolRecord, r.marshal())
}

// note writes down what was written, whether it is on disk or not.
func (s *keptSpool) note(r spoolState) error {
	s.noting.Lock()
	defer s.noting.Unlock()
	if s.gone {
		return nil
	}
	temp := s.path + spoolNote + "-new"
	if err := os.WriteFile(temp, r.marshal(), 0o666); err != nil {
		return err
	}
	return os.Rename(temp, s.path+spoolNote)
}

// noteNoMore is called before the spool goes.
func (s *keptSpool) noteNoMore() {
	s.noting.Lock()
	defer s.noting.Unlock()
	s.gone = true
}

func (r spoolState) marshal() []byte {
	b, err := json.Marshal(r)
	if err != nil {
		panic("pipeline: internal error: record does not marshal: " + err.Error())
	}
	return b
}

// keep closes the spool and leaves it to a later run.
func (s *keptSpool) keep() error {
	s.noteNoMore()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done {
		return nil
	}
	s.done = true
	return s.f.Close()
}

// Release deletes the spool, its record first.
func (s *keptSpool) Release() error {
	s.noteNoMore()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done {
		return nil
	}
	s.done = true
	return errors.Join(s.f.Close(), removeSpool(s.path))
}

func removeSpool(path string) error {
	return errors.Join(removeIfThere(path+spoolRecord), removeIfThere(path+spoolNote), removeIfThere(path+spoolData))
}

func removeIfThere(name string) error {
	if err := os.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// holdings is what a task has of its tensors, kept up to date only if its spool is one that is kept.
type holdings struct {
	mu    sync.Mutex
	spool *keptSpool        // nil: no other run will see the spool
	runs  map[int64]heldRun // by place in the spool
	safe  map[int64]int64   // how many bytes of each tensor a kill leaves, by the same
	dirty bool              // runs hold more than the record
}

// keepIn makes the holdings those of a kept spool with these bytes, all of which are on disk.
func (h *holdings) keepIn(s *keptSpool, runs []heldRun) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.spool, h.runs, h.safe, h.dirty = s, map[int64]heldRun{}, map[int64]int64{}, false
	for _, r := range runs {
		h.runs[r.At], h.safe[r.At] = r, r.N
	}
}

// touch has the spool saved again: what is there may not be on disk yet.
func (h *holdings) touch() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dirty = true
}

// held is how many of the first bytes of the tensor at a place are there.
func (h *holdings) held(at int64) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.runs[at].N
}

// kept is how many of them a kill leaves.
func (h *holdings) kept(at int64) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.safe[at]
}

// hold adds bytes that were written behind those of the tensor that are there.
func (h *holdings) hold(at, rel int64, p []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.runs[at]
	if h.spool == nil || r.N != rel {
		return
	}
	h.runs[at] = heldRun{at, r.N + int64(len(p)), crc32.Update(r.CRC, castagnoli, p)}
	h.dirty = true
}

// forget is called before the spool goes: nothing of it is safe any more.
func (h *holdings) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.spool, h.runs, h.safe, h.dirty = nil, nil, nil, false
}

// spoolNow is what there is to write down of the task's spool; the spool is nil if nothing is new since it was saved.
func (t *task) spoolNow(digest string, saving bool) (*keptSpool, spoolState) {
	t.holds.mu.Lock()
	defer t.holds.mu.Unlock()
	if t.holds.spool == nil || !t.holds.dirty {
		return nil, spoolState{}
	}
	t.holds.dirty = !saving
	runs := slices.SortedFunc(maps.Values(t.holds.runs), func(a, b heldRun) int { return cmp.Compare(a.At, b.At) })
	t.mu.Lock()
	defer t.mu.Unlock()
	prefixes := slices.Clone(t.prefixes) // those of held bytes are there: they come first
	return t.holds.spool, spoolState{spoolVersion, digest, t.path, t.size, runs, prefixes}
}

// noteSpool writes down what the task holds.
func (t *task) noteSpool(digest string) error {
	s, now := t.spoolNow(digest, false)
	if s == nil {
		return nil
	}
	return s.note(now)
}

// saveSpool puts what the task holds on disk, if anything is new.
func (t *task) saveSpool(digest string) error {
	s, now := t.spoolNow(digest, true)
	if s == nil {
		return nil
	}
	saved, err := s.save(now)
	if err != nil || !saved {
		return err
	}
	t.holds.mu.Lock()
	defer t.holds.mu.Unlock()
	if t.holds.spool == nil {
		return nil // it went meanwhile
	}
	for _, r := range now.Runs {
		t.holds.safe[r.At] = r.N
	}
	return nil
}

// keepSpool saves the task's spool and closes it for a later run.
func (t *task) keepSpool(digest string) error {
	t.holds.mu.Lock()
	s := t.holds.spool
	t.holds.mu.Unlock()
	if s == nil {
		return nil
	}
	return errors.Join(t.saveSpool(digest), s.keep())
}
