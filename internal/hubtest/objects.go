package hubtest

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"net/http"
	"os"
)

// object is one large file in the store. Its body is immutable.
type object struct {
	sha256 string
	size   int64
	body   io.ReaderAt // nil: the bytes were dropped
	path   string      // file that holds the body, when it was uploaded into a push folder
}

func (o *object) close() {
	if c, ok := o.body.(io.Closer); ok {
		_ = c.Close()
	}
}

func newObject(data []byte) *object {
	sum := sha256.Sum256(data)
	return &object{sha256: hex.EncodeToString(sum[:]), size: int64(len(data)), body: bytes.NewReader(data)}
}

// hashBody reads a whole body once.
func hashBody(body io.ReaderAt, size int64) (string, error) {
	h := sha256.New()
	buf := make([]byte, 1<<20)
	n, err := io.CopyBuffer(onlyWriter{h}, onlyReader{io.NewSectionReader(body, 0, size)}, buf)
	if err == nil && n != size {
		err = io.ErrUnexpectedEOF
	}
	return hex.EncodeToString(h.Sum(nil)), err
}

// onlyReader and onlyWriter hide the shortcuts of io.CopyBuffer, which would
// ignore its buffer.
type (
	onlyReader struct{ io.Reader }
	onlyWriter struct{ io.Writer }
)

// blobID is git's hash of a file: SHA-1 over a header and the content.
func blobID(content []byte) string {
	h := sha1.New()
	fmt.Fprintf(h, "blob %d\x00", len(content))
	h.Write(content)
	return hex.EncodeToString(h.Sum(nil))
}

// pointer is the text that git stores in place of a large file.
func pointer(sha string, size int64) []byte {
	return fmt.Appendf(nil, "version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %d\n", sha, size)
}

// xetHash stands in for the Merkle hash of Xet: 64 hex digits that belong to the
// object and are not its sha256.
func xetHash(sha string) string {
	sum := sha256.Sum256([]byte("xet " + sha))
	return hex.EncodeToString(sum[:])
}

// dropWriter keeps nothing but hash and length.
type dropWriter struct {
	hash hash.Hash
	n    int64
}

func (d *dropWriter) Write(p []byte) (int, error) {
	d.n += int64(len(p))
	return d.hash.Write(p)
}

// buffer returns a buffer for one uploaded part. Buffers come back when their
// part was hashed, which only happens where uploads are dropped.
func (s *Server) buffer(n int) []byte {
	if p, ok := s.buffers.Get().(*[]byte); ok && cap(*p) >= n {
		return (*p)[:n]
	}
	return make([]byte, n)
}

// sink receives an upload and turns it into an object.
type sink interface {
	io.Writer
	object() (*object, error)
	discard()
}

// newSink picks where uploaded bytes go: nowhere, a file, or memory.
func (s *Server) newSink() (sink, error) {
	switch {
	case s.cfg.dropUploads:
		return &dropSink{dropWriter{hash: sha256.New()}}, nil
	case s.cfg.pushDir != "":
		return s.newFileSink()
	}
	return &memorySink{}, nil
}

type dropSink struct{ dropWriter }

func (d *dropSink) object() (*object, error) {
	return &object{sha256: hex.EncodeToString(d.hash.Sum(nil)), size: d.n}, nil
}
func (d *dropSink) discard() {}

type memorySink struct{ bytes.Buffer }

func (m *memorySink) object() (*object, error) { return newObject(m.Bytes()), nil }
func (m *memorySink) discard()                 {}

// fileSink spools an upload to the push folder; the object is the same file.
type fileSink struct {
	f    *os.File
	hash hash.Hash
	n    int64
}

func (f *fileSink) Write(p []byte) (int, error) {
	n, err := f.f.Write(p)
	f.hash.Write(p[:n])
	f.n += int64(n)
	return n, err
}

func (f *fileSink) object() (*object, error) {
	return &object{sha256: hex.EncodeToString(f.hash.Sum(nil)), size: f.n, body: f.f, path: f.f.Name()}, nil
}

func (f *fileSink) discard() {
	f.f.Close()
	os.Remove(f.f.Name())
}

// store makes o known under its hash and gives it to the repo. An object that
// is there already wins, so that bodies are kept once.
func (s *Server) store(rp *repo, o *object) *object {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.objects[o.sha256]; old != nil && (old.body != nil || o.body == nil) {
		o = old
	} else {
		s.objects[o.sha256] = o
	}
	if rp != nil {
		rp.holds[o.sha256] = true
	}
	return o
}

func (s *Server) objectBy(sha string) *object {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects[sha]
}

var errDropped = fail(http.StatusGone, "the bytes of this upload were dropped on purpose")
