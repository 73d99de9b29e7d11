package hubtest

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"hash/crc32"
	"net/http"
	"sync"
)

// An assembly collects an uploaded large file in parts of one size, which come in any order, some
// of them twice. Without data it hashes parts in order and forgets them. An early part waits for
// those before it.
type assembly struct {
	chunk   int64
	data    []byte
	hash    hash.Hash
	size    int64 // of what is hashed
	hashed  int   // number of parts
	waiting map[int][]byte
}

// assemble starts an upload of size bytes in parts of chunk bytes.
func (c *config) assemble(chunk, size int64) *assembly {
	a := &assembly{chunk: chunk, hash: sha256.New(), waiting: map[int][]byte{}}
	if !c.dropUploads {
		a.data = make([]byte, size)
	}
	return a
}

// put takes part n, counted from 1, which the assembly owns from now on.
func (a *assembly) put(n int, part []byte) {
	if a.data != nil {
		copy(a.data[int64(n-1)*a.chunk:], part)
		return
	}
	if n > a.hashed { // otherwise it's sent again, and the ETag shows whether it's the same
		a.waiting[n] = part
	}
	for part, ok := a.waiting[a.hashed+1]; ok; part, ok = a.waiting[a.hashed+1] {
		a.hash.Write(part)
		a.size += int64(len(part))
		a.hashed++
		delete(a.waiting, a.hashed)
	}
}

// object is the file after the last part.
func (a *assembly) object() *object {
	if a.data != nil {
		return newObject(a.data)
	}
	return &object{sha256: hex.EncodeToString(a.hash.Sum(nil)), size: a.size}
}

// session is one multipart upload.
type session struct {
	id, repo, sha256 string
	size, chunk      int64

	mu    sync.Mutex
	etags map[int]string
	parts *assembly
	done  bool
}

func (s *Server) newSession(repo, sha string, size int64) *session {
	ses := &session{repo: repo, sha256: sha, size: size, chunk: s.cfg.chunkSize,
		etags: map[int]string{}}
	ses.id, ses.parts = rand.Text(), s.cfg.assemble(ses.chunk, size)
	s.uploads.Store(ses.id, ses)
	return ses
}

// session finds an upload, nil when there is none.
func (s *Server) session(id string) *session {
	ses, _ := s.uploads.Load(id)
	found, _ := ses.(*session)
	return found
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
		return "", failStorage(http.StatusNotFound, "NoSuchUpload",
			"The upload was completed or aborted.")
	}
	ses.parts.put(n, part)
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
			return fail(http.StatusBadRequest,
				"InvalidPartOrder: the list of parts was not in ascending order")
		}
		if p.ETag == "" || p.ETag != ses.etags[p.PartNumber] {
			return fail(http.StatusBadRequest,
				"InvalidPart: part %d was not found or its etag did not match", p.PartNumber)
		}
	}
	return nil
}

// completeMultipart answers POST /api/complete_multipart; it needs no token, and may be repeated.
func (s *Server) completeMultipart(w http.ResponseWriter, r *http.Request) error {
	q, err := readJSON[completion](r)
	if err != nil {
		return err
	}
	ses := s.session(r.URL.Query().Get("uploadId"))
	if ses == nil {
		return fail(http.StatusNotFound, "NoSuchUpload")
	}
	ses.mu.Lock()
	defer ses.mu.Unlock()
	if err := ses.check(q); err != nil {
		return err
	}
	if !ses.done {
		o := ses.parts.object()
		ses.done, ses.parts = true, nil
		if o.sha256 != ses.sha256 || o.size != ses.size {
			return fail(http.StatusBadRequest,
				"the uploaded bytes do not have the announced sha256")
		}
		s.hold(ses.repo, o)
	}
	writeJSON(w, http.StatusOK, map[string]any{"success": true})
	return nil
}
