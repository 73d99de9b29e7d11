package hubtest

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// resolve answers GET and HEAD of /{id}/resolve/{rev}/{path}: large files are a redirect to a signed URL, JSON files a
// relative redirect to the resolve cache, the others come at once.
func resolve(c *call) (any, error) {
	head, e, err := c.file()
	switch {
	case err != nil:
		return nil, err
	case e.isLFS():
		return c.toCDN(e), nil
	case strings.HasSuffix(c.r.URL.Path, ".json"):
		return redirect(http.StatusTemporaryRedirect, "Temporary Redirect. Redirecting to ", c.cacheURL(head, e)), nil
	}
	return e, nil
}

// resolveCache answers GET and HEAD of /api/resolve-cache/models/….
func resolveCache(c *call) (any, error) {
	_, e, err := c.file()
	switch {
	case err != nil:
		return nil, err
	case e.isLFS():
		return c.toCDN(e), nil
	}
	c.w.Header().Set("Cache-Control", "public, max-age=31536000")
	return e, nil
}

// raw answers GET and HEAD of /{id}/raw/{rev}/{path}: the bytes in git itself, for a large file the pointer.
func raw(c *call) (any, error) {
	_, e, err := c.file()
	if e.isLFS() {
		e.content = pointer(e.sha256, e.size)
	}
	return e, err
}

// file finds the file of a resolve route. X-Repo-Commit goes out with every answer for which the revision exists,
// EntryNotFound included.
func (c *call) file() (*commit, entry, error) {
	head, err := c.commit()
	if err != nil {
		return nil, entry{}, err
	}
	c.w.Header().Set("X-Repo-Commit", head.oid)
	e, ok := head.files[c.r.PathValue("path")]
	if !ok {
		return nil, entry{}, &apiError{status: http.StatusNotFound, code: codeEntryNotFound, message: "Entry not found"}
	}
	return head, e, nil
}

// cacheURL is the address in the resolve cache, with the odd query that the real hub appends.
func (c *call) cacheURL(head *commit, e entry) string {
	segments := strings.Split(c.r.PathValue("path"), "/")
	for i, seg := range segments {
		segments[i] = url.PathEscape(seg)
	}
	return fmt.Sprintf("/api/resolve-cache/models/%s/%s/%s?%s=&etag=%s", c.repo.name, head.oid, strings.Join(segments, "/"),
		url.QueryEscape(c.r.URL.EscapedPath()), url.QueryEscape(`"`+e.oid+`"`))
}

// ServeHTTP sends a git file.
func (e entry) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("ETag", `"`+e.oid+`"`)
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Content-Disposition", "inline")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(e.content))
}

// toCDN redirects to the bytes of a large file.
func (c *call) toCDN(e entry) http.Handler {
	h := c.w.Header()
	h.Set("X-Linked-Etag", `"`+e.sha256+`"`)
	h.Set("X-Linked-Size", fmt.Sprint(e.size))
	h.Set("ETag", `"`+e.oid+`"`)
	h.Set("Accept-Ranges", "bytes")
	return redirect(http.StatusFound, "Found. Redirecting to ", c.cdn.signDownload(e.sha256, c.r.PathValue("path")))
}

func redirect(status int, text, location string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", location)
		writeBody(w, status, "text/plain; charset=utf-8", []byte(text+location))
	})
}
