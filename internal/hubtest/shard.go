package hubtest

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"sort"
	"strings"
	"sync"
)

// shard is one safetensors file of a generated model. Its layout is written here, apart from the converter's own writer, so
// that tests do not compare that writer with itself.
type shard struct {
	path    string
	header  []byte // length, JSON, padding
	tensors []tensor
	starts  []int64 // first byte of each tensor in the file
	size    int64
	kept    func() []byte // the whole file, made at the first call; nil: nothing is kept
	sum     func() string // made at the first call
}

// headerEntry is the description of one tensor, in the order of safetensors.
type headerEntry struct {
	DType   string   `json:"dtype"`
	Shape   []int64  `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"`
}

// newShard lays the tensors out in the given order.
func newShard(path string, tensors []tensor) *shard {
	s := &shard{path: path, tensors: tensors}
	var text strings.Builder
	text.WriteString(`{"__metadata__":{"format":"pt"}`)
	var off int64
	for _, t := range tensors {
		name, _ := json.Marshal(t.name)
		entry, _ := json.Marshal(headerEntry{"BF16", t.shape, [2]int64{off, off + t.nBytes()}})
		text.WriteString("," + string(name) + ":" + string(entry))
		s.starts = append(s.starts, off)
		off += t.nBytes()
	}
	text.WriteString("}")
	if pad := text.Len() % 8; pad != 0 {
		text.WriteString(strings.Repeat(" ", 8-pad))
	}
	s.header = binary.LittleEndian.AppendUint64(nil, uint64(text.Len()))
	s.header = append(s.header, text.String()...)
	for i := range s.starts {
		s.starts[i] += int64(len(s.header))
	}
	s.size = int64(len(s.header)) + off
	s.sum = sync.OnceValue(s.hash)
	return s
}

// keep makes the first reader of the weights make all of them, for everyone who reads later.
func (s *shard) keep() {
	s.kept = sync.OnceValue(func() []byte {
		p := make([]byte, s.size)
		_, _ = s.generate(p, 0)
		return p
	})
}

// sha256 is the hash of the file, for hashBody.
func (s *shard) sha256() string { return s.sum() }

func (s *shard) hash() string {
	h := sha256.New()
	_, _ = io.Copy(h, io.NewSectionReader(s, 0, s.size))
	return hex.EncodeToString(h.Sum(nil))
}

// ReadAt reads any range of the file.
func (s *shard) ReadAt(p []byte, off int64) (int, error) {
	if s.kept == nil || off+int64(len(p)) <= int64(len(s.header)) {
		return s.generate(p, off)
	}
	n := copy(p, s.kept()[min(off, s.size):])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// generate makes any range of the file.
func (s *shard) generate(p []byte, off int64) (int, error) {
	n := 0
	if off < int64(len(s.header)) {
		n = copy(p, s.header[off:])
	}
	i := max(0, sort.Search(len(s.starts), func(i int) bool { return s.starts[i] > off+int64(n) })-1)
	for ; n < len(p) && i < len(s.tensors); i++ {
		t, at := s.tensors[i], off+int64(n)-s.starts[i]
		m := min(int64(len(p)-n), t.nBytes()-at)
		if m <= 0 {
			continue
		}
		if _, err := t.ReadAt(p[n:n+int(m)], at); err != nil && !errors.Is(err, io.EOF) {
			return n, err
		}
		n += int(m)
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}
