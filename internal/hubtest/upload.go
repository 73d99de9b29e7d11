package hubtest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"hash/crc32"
	"net/http"
	"os"
	"sync"
)

// assembly collects an uploaded large file in parts of one size, which come in any order, some of them twice.
type assembly interface {
	put(n int, part []byte) error // n counts from 1; the assembly owns the part from now on
	object() (*object, error)     // after the last part
	discard()
}

// assemble starts an upload of size bytes in parts of chunk bytes.
func (s *objects) assemble(chunk, size int64) (assembly, error) {
	switch {
	case s.dropUploads:
		return &dropParts{hash: sha256.New(), waiting: map[int][]byte{}, free: &s.buffers}, nil
	case s.spool != "":
		f, err := os.CreateTemp(s.spool, "object-")
		if err != nil {
			return nil, err
		}
		return &fileParts{f: f, chunk: chunk, size: size}, f.Chmod(0o644)
	}
	return &memoryParts{data: make([]byte, size), chunk: chunk}, nil
}

// buffer returns a buffer for one part. Buffers come back when their part was hashed, which only happens where uploads are
// dropped.
func (s *objects) buffer(n int64) []byte {
	if p, ok := s.buffers.Get().(*[]byte); ok && int64(cap(*p)) >= n {
		return (*p)[:n]
	}
	return make([]byte, n)
}

// memoryParts copies every part to its place.
type memoryParts struct {
	data  []byte
	chunk int64
}

func (m *memoryParts) put(n int, part []byte) error {
	copy(m.data[int64(n-1)*m.chunk:], part)
	return nil
}

func (m *memoryParts) object() (*object, error) { return newObject(m.data), nil }

func (m *memoryParts) discard() { m.data = nil }

// fileParts writes every part to its place in a file of the push folder; the object is the same file.
type fileParts struct {
	f           *os.File
	chunk, size int64
}

func (p *fileParts) put(n int, part []byte) error {
	_, err := p.f.WriteAt(part, int64(n-1)*p.chunk)
	return err
}

func (p *fileParts) object() (*object, error) {
	sum, err := hashBody(p.f, p.size)
	return &object{sha256: sum, size: p.size, body: p.f, path: p.f.Name()}, err
}

func (p *fileParts) discard() {
	p.f.Close()
	os.Remove(p.f.Name())
}

// dropParts hashes parts in order and forgets them; a part that comes early waits in memory for those before it.
type dropParts struct {
	hash    hash.Hash
	size    int64
	hashed  int // number of parts
	waiting map[int][]byte
	free    *sync.Pool // takes the buffers back
}

func (d *dropParts) put(n int, part []byte) error {
	if n <= d.hashed {
		d.free.Put(&part)
		return nil // sent again after it was hashed: the ETag tells whether it is the same
	}
	d.waiting[n] = part
	for part, ok := d.waiting[d.hashed+1]; ok; part, ok = d.waiting[d.hashed+1] {
		d.hash.Write(part)
		d.size += int64(len(part))
		d.hashed++
		delete(d.waiting, d.hashed)
		d.free.Put(&part)
	}
	return nil
}

func (d *dropParts) object() (*object, error) {
	return &object{sha256: hex.EncodeToString(d.hash.Sum(nil)), size: d.size}, nil
}

func (d *dropParts) discard() {}

// session is one multipart upload.
type session struct {
	id, repo, sha256 string
	size, chunk      int64

	mu    sync.Mutex
	etags map[int]string
	parts assembly
	done  bool
}

func (c *cdn) newSession(repo, sha string, size int64) (*session, error) {
	ses := &session{repo: repo, sha256: sha, size: size, chunk: c.cfg.chunkSize, etags: map[int]string{}}
	var err error
	if ses.parts, err = c.objects.assemble(ses.chunk, size); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	ses.id = fmt.Sprintf("mp%06d", len(c.sessions)+1)
	c.sessions[ses.id] = ses
	return ses, nil
}

// session finds an upload, nil when there is none.
func (c *cdn) session(id string) *session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sessions[id]
}

func (ses *session) nParts() int { return int((ses.size + ses.chunk - 1) / ses.chunk) }

// partSize is the size of part n: the last one is shorter than the others.
func (ses *session) partSize(n int) int64 { return min(ses.chunk, ses.size-int64(n-1)*ses.chunk) }

// put stores part n (from 1) and returns its ETag.
func (ses *session) put(n int, part []byte) (string, error) {
	tag := etag(crc32.ChecksumIEEE(part))
	ses.mu.Lock()
	defer ses.mu.Unlock()
	if ses.done {
		return "", storageError{http.StatusNotFound, "NoSuchUpload", "The upload was completed or aborted."}
	}
	if err := ses.parts.put(n, part); err != nil {
		return "", err
	}
	ses.etags[n] = tag
	return tag, nil
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

// completeMultipart answers POST /api/complete_multipart; it needs no token, and may be repeated.
func (s *Server) completeMultipart(w http.ResponseWriter, r *http.Request) error {
	var q completion
	if err := readJSON(r, &q); err != nil {
		return err
	}
	ses := s.cdn.session(r.URL.Query().Get("uploadId"))
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
		s.hold(ses.repo, o)
	}
	writeJSON(w, http.StatusOK, map[string]any{"success": true})
	return nil
}
