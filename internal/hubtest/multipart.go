package hubtest

import (
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
)

// session is one multipart upload.
type session struct {
	id, repo, sha256 string
	size, chunk      int64

	mu    sync.Mutex
	etags map[int]string
	parts assembly
	done  bool
}

func (ses *session) nParts() int { return int((ses.size + ses.chunk - 1) / ses.chunk) }

// assembly collects parts that arrive in any order, some of them twice. It owns
// the data it is given.
type assembly interface {
	put(n int, data []byte) error
	object() (*object, error)
	discard()
}

func (s *Server) newSession(repo, sha string, size int64) (*session, error) {
	ses := &session{repo: repo, sha256: sha, size: size, chunk: s.cfg.chunkSize, etags: map[int]string{}}
	switch {
	case s.cfg.dropUploads:
		ses.parts = &dropParts{sum: dropWriter{hash: sha256.New()}, waiting: map[int][]byte{}, free: &s.buffers}
	case s.cfg.pushDir != "":
		f, err := s.tempFile()
		if err != nil {
			return nil, err
		}
		ses.parts = &fileParts{f: f, chunk: ses.chunk, size: size}
	default:
		ses.parts = &memoryParts{data: map[int][]byte{}, chunk: ses.chunk, size: size}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ses.id = fmt.Sprintf("mp%06d", len(s.sessions)+1)
	s.sessions[ses.id] = ses
	return ses, nil
}

// put stores part n (from 1) and returns its ETag, quotes included.
func (ses *session) put(n int, data []byte) (string, error) {
	sum := md5.Sum(data)
	etag := `"` + hex.EncodeToString(sum[:]) + `"`
	ses.mu.Lock()
	defer ses.mu.Unlock()
	if ses.done {
		return "", storageError{http.StatusNotFound, "NoSuchUpload", "The upload was completed or aborted."}
	}
	if err := ses.parts.put(n, data); err != nil {
		return "", err
	}
	ses.etags[n] = etag
	return etag, nil
}

// completion is the body of POST /api/complete_multipart.
type completion struct {
	OID   string `json:"oid"`
	Parts []struct {
		PartNumber int    `json:"partNumber"`
		ETag       string `json:"etag"`
	} `json:"parts"`
}

// check compares the client's list of parts with ours.
func (ses *session) check(q completion) error {
	if q.OID != ses.sha256 {
		return fail(http.StatusBadRequest, "oid does not belong to this upload")
	}
	if len(q.Parts) != ses.nParts() {
		return fail(http.StatusBadRequest, "expected %d parts, got %d", ses.nParts(), len(q.Parts))
	}
	for i, p := range q.Parts {
		if p.PartNumber != i+1 {
			return fail(http.StatusBadRequest, "InvalidPartOrder: the list of parts was not in ascending order")
		}
		if p.ETag == "" || p.ETag != ses.etags[p.PartNumber] {
			return fail(http.StatusBadRequest, "InvalidPart: part %d was not found or its etag did not match", p.PartNumber)
		}
	}
	return nil
}

// completeMultipart answers POST /api/complete_multipart; it needs no token,
// and may be repeated.
func (s *Server) completeMultipart(w http.ResponseWriter, r *http.Request) error {
	var q completion
	if err := readJSON(r, &q); err != nil {
		return err
	}
	s.mu.Lock()
	ses := s.sessions[r.URL.Query().Get("uploadId")]
	s.mu.Unlock()
	if ses == nil {
		return fail(http.StatusNotFound, "NoSuchUpload")
	}
	ses.mu.Lock()
	defer ses.mu.Unlock()
	if err := ses.check(q); err != nil {
		return err
	}
	if !ses.done {
		o, err := ses.parts.object()
		if err != nil {
			return err
		}
		ses.done = true
		if o.sha256 != ses.sha256 || o.size != ses.size {
			ses.parts.discard()
			return fail(http.StatusBadRequest, "the uploaded bytes do not have the announced sha256")
		}
		s.storeFor(ses.repo, o)
	}
	writeJSON(w, http.StatusOK, map[string]any{"success": true})
	return nil
}

// memoryParts keeps every part as it came.
type memoryParts struct {
	data        map[int][]byte
	chunk, size int64
}

func (m *memoryParts) put(n int, data []byte) error {
	m.data[n] = data
	return nil
}

func (m *memoryParts) object() (*object, error) {
	h := sha256.New()
	var n int64
	for i := 1; i <= len(m.data); i++ {
		h.Write(m.data[i])
		n += int64(len(m.data[i]))
	}
	return &object{sha256: hex.EncodeToString(h.Sum(nil)), size: n, body: m}, nil
}

func (m *memoryParts) discard() { m.data = nil }

// ReadAt reads across parts, so that the file is never copied into one piece.
func (m *memoryParts) ReadAt(p []byte, off int64) (int, error) {
	n := 0
	for n < len(p) {
		part := m.data[int((off+int64(n))/m.chunk)+1]
		at := (off + int64(n)) % m.chunk
		if at >= int64(len(part)) {
			return n, io.EOF
		}
		n += copy(p[n:], part[at:])
	}
	return n, nil
}

// fileParts writes every part to its place in a file of the push folder.
type fileParts struct {
	f           *os.File
	chunk, size int64
}

func (p *fileParts) put(n int, data []byte) error {
	_, err := p.f.WriteAt(data, int64(n-1)*p.chunk)
	return err
}

func (p *fileParts) object() (*object, error) {
	sum, err := hashBody(p.f, p.size)
	if err != nil {
		return nil, err
	}
	return &object{sha256: sum, size: p.size, body: p.f, path: p.f.Name()}, nil
}

func (p *fileParts) discard() {
	p.f.Close()
	os.Remove(p.f.Name())
}

// dropParts hashes parts in order and forgets them; a part that comes early
// waits in memory for those before it.
type dropParts struct {
	sum     dropWriter
	next    int // number of parts hashed
	waiting map[int][]byte
	free    *sync.Pool // takes the buffers back
}

func (d *dropParts) put(n int, data []byte) error {
	if n <= d.next {
		d.free.Put(&data)
		return nil // sent again after it was hashed: the ETag tells whether it is the same
	}
	d.waiting[n] = data
	for part, ok := d.waiting[d.next+1]; ok; part, ok = d.waiting[d.next+1] {
		_, _ = d.sum.Write(part)
		d.next++
		delete(d.waiting, d.next)
		d.free.Put(&part)
	}
	return nil
}

func (d *dropParts) object() (*object, error) {
	return &object{sha256: hex.EncodeToString(d.sum.hash.Sum(nil)), size: d.sum.n}, nil
}

func (d *dropParts) discard() {}
