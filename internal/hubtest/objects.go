package hubtest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
)

// objects holds the large files of all repos.
type objects struct {
	dropUploads bool

	mu     sync.Mutex
	byHash map[string]*object
}

// object is one large file. Its body is immutable.
type object struct {
	sha256 string
	size   int64
	body   io.ReaderAt // nil: the bytes were dropped
}

func newObject(data []byte) *object {
	sum := sha256.Sum256(data)
	return &object{sha256: hex.EncodeToString(sum[:]), size: int64(len(data)), body: bytes.NewReader(data)}
}

var errDropped = failStorage(http.StatusGone, "Gone", "the bytes of this upload were dropped on purpose")

func (o *object) reader() (*io.SectionReader, error) {
	if o.body == nil {
		return nil, errDropped
	}
	return io.NewSectionReader(o.body, 0, o.size), nil
}

func (s *objects) get(sha string) *object {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byHash[sha]
}

func (s *objects) set(o *object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byHash[o.sha256] = o
}

// add is set for an upload: an object that is there already wins, so that bodies are kept once.
func (s *objects) add(o *object) {
	if old := s.get(o.sha256); old == nil || old.body == nil && o.body != nil {
		s.set(o)
	}
}

// open returns the content of a file of a commit.
func (s *objects) open(e File) (*io.SectionReader, error) {
	if !e.isLFS() {
		return io.NewSectionReader(strings.NewReader(e.content), 0, e.Size), nil
	}
	o := s.get(e.SHA256)
	if o == nil {
		return nil, errors.New("the object is not in the store")
	}
	return o.reader()
}

// close ends the use of files as bodies.
func (s *objects) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.byHash {
		if c, ok := o.body.(io.Closer); ok {
			_ = c.Close()
		}
	}
}

// hashBody reads a whole body once, unless the body knows its hash.
func hashBody(body io.ReaderAt, size int64) (string, error) {
	if known, ok := body.(interface{ sha256() string }); ok {
		return known.sha256(), nil
	}
	return sumBody(body, size)
}

func sumBody(body io.ReaderAt, size int64) (string, error) {
	h := sha256.New()
	n, err := io.CopyBuffer(h, io.NewSectionReader(body, 0, size), make([]byte, 1<<20))
	if err == nil && n != size {
		err = io.ErrUnexpectedEOF
	}
	return hex.EncodeToString(h.Sum(nil)), err
}
