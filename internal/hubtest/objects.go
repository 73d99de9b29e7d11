package hubtest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strings"
)

// object is one large file. Its body is immutable.
type object struct {
	sha256 string
	size   int64
	body   io.ReaderAt // nil: the bytes were dropped
}

func newObject(data []byte) *object {
	sum := sha256.Sum256(data)
	return &object{sha256: hex.EncodeToString(sum[:]), size: int64(len(data)),
		body: bytes.NewReader(data)}
}

var errDropped = failStorage(http.StatusGone, "Gone",
	"the bytes of this upload were dropped on purpose")

func (o *object) reader() (*io.SectionReader, error) {
	if o.body == nil {
		return nil, errDropped
	}
	return io.NewSectionReader(o.body, 0, o.size), nil
}

// open returns the content of a file of a commit.
func (s *store) open(e File) (*io.SectionReader, error) {
	if !e.isLFS() {
		return io.NewSectionReader(strings.NewReader(e.content), 0, e.Size), nil
	}
	return s.objects[e.SHA256].reader()
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
	n, err := io.CopyBuffer(h, io.NewSectionReader(body, 0, size), make([]byte, min(size+1, 1<<20)))
	if err == nil && n != size {
		err = io.ErrUnexpectedEOF
	}
	return hex.EncodeToString(h.Sum(nil)), err
}
