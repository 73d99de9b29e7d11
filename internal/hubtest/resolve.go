package hubtest

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

func isJSON(path string) bool { return strings.HasSuffix(path, ".json") }

// resolve answers GET and HEAD of /{id}/resolve/{rev}/{path}: large files are a
// redirect to a signed URL, some git files a relative redirect to the resolve
// cache, the others come at once.
func (s *Server) resolve(w http.ResponseWriter, r *http.Request) error {
	c, e, err := s.fileFor(w, r)
	if err != nil {
		return err
	}
	switch {
	case e.isLFS():
		return s.redirectToCDN(w, r, c, e)
	case s.cfg.resolveCache(r.PathValue("path")):
		location := cacheURL(r, c, e)
		w.Header().Set("Location", location)
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		body := "Temporary Redirect. Redirecting to " + location
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		w.WriteHeader(http.StatusTemporaryRedirect)
		_, _ = io.WriteString(w, body)
		return nil
	}
	return s.sendGitFile(w, r, e)
}

// resolveCache answers GET and HEAD of /api/resolve-cache/models/….
func (s *Server) resolveCache(w http.ResponseWriter, r *http.Request) error {
	c, e, err := s.fileFor(w, r)
	if err != nil {
		return err
	}
	if e.isLFS() {
		return s.redirectToCDN(w, r, c, e)
	}
	w.Header().Set("Cache-Control", "public, max-age=31536000")
	return s.sendGitFile(w, r, e)
}

// raw answers GET and HEAD of /{id}/raw/{rev}/{path}: what git itself stores,
// for a large file the pointer.
func (s *Server) raw(w http.ResponseWriter, r *http.Request) error {
	_, e, err := s.fileFor(w, r)
	if err != nil {
		return err
	}
	if e.isLFS() {
		e.content = pointer(e.sha256, e.size)
	}
	return s.sendGitFile(w, r, e)
}

// fileFor finds the file of a resolve route. X-Repo-Commit goes out with every
// answer for which the revision exists, EntryNotFound included.
func (s *Server) fileFor(w http.ResponseWriter, r *http.Request) (*commit, entry, error) {
	rp, _, err := s.repoFor(r, accessFiles)
	if err != nil {
		return nil, entry{}, err
	}
	c, err := s.commitAt(rp, r.PathValue("rev"))
	if err != nil {
		return nil, entry{}, err
	}
	w.Header().Set("X-Repo-Commit", c.oid)
	e, ok := c.files[r.PathValue("path")]
	if !ok {
		return nil, entry{}, &apiError{status: http.StatusNotFound, code: codeEntryNotFound, message: "Entry not found"}
	}
	return c, e, nil
}

// cacheURL is the address in the resolve cache, with the odd query that the
// real hub appends.
func cacheURL(r *http.Request, c *commit, e entry) string {
	file := escapePath(r.PathValue("path"))
	id := r.PathValue("ns") + "/" + r.PathValue("name")
	return fmt.Sprintf("/api/resolve-cache/models/%s/%s/%s?%s=&etag=%s",
		id, c.oid, file, url.QueryEscape(r.URL.EscapedPath()), url.QueryEscape(`"`+e.oid+`"`))
}

func escapePath(p string) string {
	segments := strings.Split(p, "/")
	for i, seg := range segments {
		segments[i] = url.PathEscape(seg)
	}
	return strings.Join(segments, "/")
}

func (s *Server) sendGitFile(w http.ResponseWriter, r *http.Request, e entry) error {
	body, err := newObject(e.content).reader()
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("ETag", `"`+e.oid+`"`)
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Content-Disposition", "inline")
	http.ServeContent(w, r, "", time.Time{}, body)
	return nil
}

func (s *Server) redirectToCDN(w http.ResponseWriter, r *http.Request, c *commit, e entry) error {
	location := s.signDownload(e.sha256, r.PathValue("path"))
	h := w.Header()
	h.Set("Location", location)
	h.Set("X-Linked-Etag", `"`+e.sha256+`"`)
	h.Set("X-Linked-Size", fmt.Sprint(e.size))
	h.Set("ETag", `"`+e.oid+`"`)
	h.Set("Accept-Ranges", "bytes")
	h.Set("Content-Type", "text/plain; charset=utf-8")
	body := "Found. Redirecting to " + location
	h.Set("Content-Length", fmt.Sprint(len(body)))
	w.WriteHeader(http.StatusFound)
	_, _ = io.WriteString(w, body)
	return nil
}
