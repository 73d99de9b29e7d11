package hubtest

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

const lfsType = "application/vnd.git-lfs+json"

var sha256Hex = regexp.MustCompile(`^[0-9a-f]{64}$`)

type lfsPointer struct {
	OID  string `json:"oid"`
	Size int64  `json:"size"`
}

type batchRequest struct {
	Operation string       `json:"operation"`
	Transfers []string     `json:"transfers"`
	Objects   []lfsPointer `json:"objects"`
	HashAlgo  string       `json:"hash_algo"`
	Ref       *struct {
		Name string `json:"name"`
	} `json:"ref"`
}

// lfsBatch answers POST /{id}.git/info/lfs/objects/batch.
func (s *Server) lfsBatch(w http.ResponseWriter, r *http.Request) error {
	var q batchRequest
	if err := readJSON(r, &q); err != nil {
		return err
	}
	want := accessUpload
	if q.Operation == "download" {
		want = accessFiles
	}
	rp, _, err := s.repoFor(r, want)
	if err != nil {
		return err
	}
	if err := q.check(); err != nil {
		return err
	}
	transfer, objects := "basic", []map[string]any{}
	for _, p := range q.Objects {
		m, multipart, err := s.batchObject(rp, q, p)
		if err != nil {
			return err
		}
		if multipart {
			transfer = "multipart"
		}
		objects = append(objects, m)
	}
	writeJSON(w, http.StatusOK, map[string]any{"transfer": transfer, "objects": objects, "hash_algo": "sha256"})
	return nil
}

func (q batchRequest) check() error {
	if q.Operation != "upload" && q.Operation != "download" {
		return fail(http.StatusBadRequest, "unknown operation %q", q.Operation)
	}
	if !slices.Contains([]string{"", "sha256", "sha_256"}, q.HashAlgo) {
		return fail(http.StatusConflict, "unsupported hash algorithm %q", q.HashAlgo)
	}
	return nil
}

// batchObject decides how one object travels.
func (s *Server) batchObject(rp *repo, q batchRequest, p lfsPointer) (m map[string]any, multipart bool, err error) {
	m = map[string]any{"oid": p.OID, "size": p.Size, "authenticated": true}
	refuse := func(code int, format string, args ...any) map[string]any {
		m["error"] = map[string]any{"code": code, "message": fmt.Sprintf(format, args...)}
		return m
	}
	if !sha256Hex.MatchString(p.OID) || p.Size < 0 {
		return refuse(http.StatusUnprocessableEntity, "Invalid object: %s", p.OID), false, nil
	}
	s.mu.Lock()
	_, held := rp.holds[p.OID]
	o, name := s.objects[p.OID], rp.name
	s.mu.Unlock()
	if q.Operation == "download" {
		if !held {
			return refuse(http.StatusNotFound, "Object does not exist on the server"), false, nil
		}
		m["actions"] = map[string]any{"download": s.action(s.signDownload(p.OID, p.OID), s.cfg.downloadTTL)}
		return m, false, nil
	}
	if held {
		if o != nil && o.size != p.Size {
			return refuse(http.StatusUnprocessableEntity, "Object has size %d", o.size), false, nil
		}
		return m, false, nil
	}
	verify := map[string]any{"href": s.URL + "/" + name + ".git/info/lfs/objects/verify"}
	if p.Size < s.cfg.multipartFrom || !slices.Contains(q.Transfers, "multipart") {
		href := s.sign(http.MethodPut, "/upload/"+name+"/"+p.OID, "x-id=PutObject", s.cfg.uploadTTL)
		m["actions"] = map[string]any{"upload": s.action(href, s.cfg.uploadTTL), "verify": verify}
		return m, false, nil
	}
	upload, err := s.multipartAction(name, p)
	m["actions"] = map[string]any{"upload": upload, "verify": verify}
	return m, true, err
}

func (s *Server) action(href string, ttl time.Duration) map[string]any {
	return map[string]any{"href": href, "expires_in": int(ttl / time.Second),
		"expires_at": s.cfg.clock().Add(ttl).UTC().Format(time.RFC3339)}
}

// multipartAction opens a session and signs one URL per part.
func (s *Server) multipartAction(repo string, p lfsPointer) (map[string]any, error) {
	ses, err := s.newSession(repo, p.OID, p.Size)
	if err != nil {
		return nil, err
	}
	header := map[string]string{"chunk_size": fmt.Sprint(ses.chunk)}
	for n := 1; n <= ses.nParts(); n++ {
		query := fmt.Sprintf("partNumber=%d&uploadId=%s&x-id=UploadPart", n, ses.id)
		header[fmt.Sprintf("%05d", n)] = s.sign(http.MethodPut, fmt.Sprintf("/multipart/%s/%d", ses.id, n), query, s.cfg.uploadTTL)
	}
	href := fmt.Sprintf("%s/api/complete_multipart?uploadId=%s&bucket=hub&prefix=%s&expiration=soon", s.URL, ses.id, strings.ReplaceAll(repo, "/", "%2F"))
	m := s.action(href, s.cfg.uploadTTL)
	m["header"] = header
	return m, nil
}

// lfsVerify answers POST /{id}.git/info/lfs/objects/verify.
func (s *Server) lfsVerify(w http.ResponseWriter, r *http.Request) error {
	rp, _, err := s.repoFor(r, accessUpload)
	if err != nil {
		return err
	}
	var p lfsPointer
	if err := readJSON(r, &p); err != nil {
		return err
	}
	s.mu.Lock()
	o := s.objects[p.OID]
	held := rp.holds[p.OID]
	s.mu.Unlock()
	switch {
	case !held || o == nil:
		return fail(http.StatusNotFound, "Object %s was not uploaded, or its content has another hash", p.OID)
	case o.size != p.Size:
		return fail(http.StatusUnprocessableEntity, "Object has size %d, not %d", o.size, p.Size)
	}
	w.Header().Set("Content-Type", lfsType)
	w.WriteHeader(http.StatusOK)
	return nil
}
